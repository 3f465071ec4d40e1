// From half floats to weights, and from weights to colours, by the scales that scales.py made.
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

/** The scale of a head, as scales.py made it: the weight of the last colour, and that at the bend with its level. */
function scaleOf(record, head) {
  const [ceiling, bend, low] = record.ceilings[state.scale][head] ?? [1, null, 1];
  return { ceiling, bend, low };
}

function levelOf(value, { ceiling, bend, low }) {
  const share = Math.min(1, Math.max(0, value / ceiling));
  if (state.scale === "linear") return share;
  if (state.scale === "log") return Math.max(0, 1 + Math.log10(Math.max(share, 1e-30)) / data.decades);
  if (bend === null) return Math.sqrt(share);
  const at = bend / ceiling;
  return share <= at ? low * Math.sqrt(share / at) : low + (1 - low) * (1 - Math.log(share) / Math.log(at));
}

function weightAt(level, { ceiling, bend, low }) {
  if (state.scale === "log") return ceiling * 10 ** (data.decades * (level - 1));
  if (state.scale === "linear") return ceiling * level;
  if (bend === null || level <= low) return (bend ?? ceiling) * (level / low) ** 2;
  return bend * (ceiling / bend) ** ((level - low) / (1 - low));
}

function colourOf(value, scale) {
  if (Number.isNaN(value)) return [214, 39, 40];
  return data.colours[Math.round(levelOf(value, scale) * (data.colours.length - 1))];
}

/** Black or white, whichever can be read better on the colour: where they meet, both have a contrast of 4.6. */
function inkOn(colour) {
  const [red, green, blue] = colour.map((part) => (part / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

const shown = (value) => (value >= 0.001 || value === 0 ? value.toFixed(3) : value.toExponential(1));
