// Weights of a head from half floats, and their colours by the tables that Python computed (scales.py, colours.py).

/** The weight at an index of the maps, a half float. */
function weightAt(maps, index) {
  const bits = maps.getUint16(2 * index, true), exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return NaN;
  return (bits >> 15 ? -1 : 1) * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

/** The cells of a head. The scales "hidden" and "renormalised" clear the column of the first key. */
function cellsOf(view, layer, head) {
  const { scale } = view.state, { R, C, firstColumn } = view.data.records[layer];
  const cells = new Float32Array(R * C), start = view.offsets[layer] + head * R * C;
  for (let i = 0; i < cells.length; i++) cells[i] = weightAt(view.maps, start + i);
  if (scale !== "hidden" && scale !== "renormalised") return cells;
  for (let row = 0; row < R; row++) {
    const line = cells.subarray(row * C, (row + 1) * C);
    line[firstColumn] = 0;
    const sum = line.reduce((a, b) => a + b, 0);
    if (scale === "renormalised" && sum > 0) line.forEach((value, i) => { line[i] = value / sum; });
  }
  return cells;
}

const NO_TABLE = { boundaries: [], legend: [], threshold: null };

/** The colour table of a head under the current scale. */
function tableOf(view, layer, head) {
  return view.data.tables[view.data.records[layer].tables[view.state.scale][head]] ?? NO_TABLE;
}

/** The colour of a weight and of text on it: the last colour whose boundary is not above the weight. */
function colourOf(view, value, { boundaries }) {
  if (Number.isNaN(value)) return view.data.nan;
  let low = 0, high = boundaries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (boundaries[middle] <= value) low = middle + 1; else high = middle;
  }
  return view.data.colours[low];
}

const numberText = (value) => (value >= 0.001 || value === 0 ? value.toFixed(3) : value.toExponential(1));
