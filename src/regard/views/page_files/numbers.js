// From half floats to weights, and from weights to colours: the rules of scales.py, for the page.
"use strict";

function half(at) {
  const bits = halves.getUint16(2 * at, true), exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return NaN;
  return (bits >> 15 ? -1 : 1) * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

/** The cells of a head as the scale wants them. */
function cellsOf(record, head) {
  const { R, C } = record, cells = new Float32Array(R * C), start = record.offset + head * R * C;
  for (let i = 0; i < cells.length; i++) cells[i] = half(start + i);
  if (state.scale !== "hidden" && state.scale !== "renormalised") return cells;
  for (let row = 0; row < R; row++) {
    const line = cells.subarray(row * C, (row + 1) * C);
    line[record.firstColumn] = 0;
    const sum = line.reduce((a, b) => a + b, 0);
    if (state.scale === "renormalised" && sum > 0) line.forEach((value, i) => { line[i] = value / sum; });
  }
  return cells;
}

/** The weight that gets the last colour: the largest; where the first token takes much, the largest of the others. */
function ceilingOf(record, head, cells) {
  const bar = Math.max(data.rules.sink, data.rules.timesEven * record.even);
  const sink = state.scale === "auto" && (record.first[head] ?? 0) > bar;
  const largest = (skipped) => cells.reduce((a, b, i) => (b > a && !(skipped && i % record.C === record.firstColumn) ? b : a), 0);
  const others = largest(sink), least = data.rules.negligible / record.C;
  return (others >= least ? others : largest(false)) || 1;
}

function levelOf(value, ceiling) {
  const share = Math.min(1, Math.max(0, value / ceiling));
  if (state.scale === "linear") return share;
  if (state.scale === "log") return Math.max(0, 1 + Math.log10(Math.max(share, 1e-30)) / data.rules.decades);
  return Math.sqrt(share);
}

function weightAt(level, ceiling) {
  if (state.scale === "log") return ceiling * 10 ** (data.rules.decades * (level - 1));
  return ceiling * (state.scale === "linear" ? level : level ** 2);
}

function colourOf(value, ceiling) {
  if (Number.isNaN(value)) return [214, 39, 40];
  return data.colours[Math.round(levelOf(value, ceiling) * (data.colours.length - 1))];
}

/** Black or white, whichever can be read better on the colour: where they meet, both have a contrast of 4.6. */
function inkOn(colour) {
  const [red, green, blue] = colour.map((part) => (part / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

const shown = (value) => (value >= 0.001 || value === 0 ? value.toFixed(3) : value.toExponential(1));
