// Weights to levels and colours, as views/scales.py defines them; tests compare the two.

import { create } from "./dom.js";

const SINK = 0.3, TIMES_EVEN = 1.5, NEGLIGIBLE = 0.1, DECADES = 4, MANY = 400, LOG_SHARE = 0.12, MOST_LOG_SHARE = 0.5;

/**
 * The scale of cells that are drawn together.
 * @param {ScaleName} name
 * @param {Cells[]} pictures
 * @returns {Scale}
 */
export function scaleFor(name, pictures) {
  let highest = 0, seen = 0;
  for (const cells of pictures) {
    for (const value of cells.values) if (value > 0 && value < Infinity) { seen++; if (value > highest) highest = value; }
  }
  if (!seen) return makeScale(name, 1, false, null);
  const top = roundedUp(highest);
  let logThreshold = null;
  if (name !== "linear" && name !== "log") {
    const others = highestOf(name === "auto" ? besideSinks(pictures) : pictures.map((cells) => ({ cells, skip: -1 })));
    const widest = Math.max(...pictures.map(({ C }) => C));
    if (others >= NEGLIGIBLE / widest && others < Math.min(highest, top) && Math.sqrt(others / top) < thresholdLevel(others, top)) {
      logThreshold = others;
    }
  }
  return makeScale(name, top, top < highest, logThreshold);
}

/** @param {ScaleName} name @param {number} ceiling @param {boolean} clipped @param {number | null} logThreshold @returns {Scale} */
export function makeScale(name, ceiling, clipped, logThreshold) {
  const low = logThreshold === null ? 1 : thresholdLevel(logThreshold, ceiling), at = (logThreshold ?? ceiling) / ceiling;
  /** @param {number} value */
  const level = (value) => {
    const share = Math.min(1, Math.max(0, value / ceiling));
    if (name === "linear") return share;
    if (name === "log") return Math.min(1, Math.max(0, 1 + Math.log10(Math.max(share, 1e-30)) / DECADES));
    if (logThreshold === null) return Math.sqrt(share);
    if (share <= at) return low * Math.sqrt(share / at);
    return low + (1 - low) * (1 - Math.log(share) / Math.log(at));
  };
  return { name, ceiling, clipped, logThreshold, level };
}

/** @param {number} threshold @param {number} ceiling */
const thresholdLevel = (threshold, ceiling) => 1 - Math.min(MOST_LOG_SHARE, LOG_SHARE * (1 + Math.log10(ceiling / threshold)));

/** 1 or 3 times a power of ten, not below the weight. @param {number} weight */
function roundedUp(weight) {
  const power = Math.floor(Math.log10(weight));
  const steps = [0, 1].flatMap((up) => [1, 3].map((times) => Number(`${times}e${power + up}`)));
  return steps.find((step) => weight <= step * (1 + 1e-6)) ?? weight;
}

/** @param {Cells[]} pictures */
function besideSinks(pictures) {
  const bar = Math.max(SINK, ...pictures.map(({ even }) => TIMES_EVEN * even));
  return pictures.map((cells) => ({ cells, skip: cells.first !== null && cells.first > bar ? cells.firstColumn : -1 }));
}

/** The largest weight; of many weights the 99 % quantile, as NumPy interpolates it. @param {{cells: Cells, skip: number}[]} pictures */
function highestOf(pictures) {
  const total = pictures.reduce((sum, { cells }) => sum + cells.values.length, 0), found = new Float32Array(total);
  let count = 0;
  for (const { cells: { values, C }, skip } of pictures) {
    for (let i = 0; i < values.length; i++) {
      if (values[i] > 0 && values[i] < Infinity && (skip < 0 || i % C !== skip)) found[count++] = values[i];
    }
  }
  const weights = found.subarray(0, count).sort();
  if (count < MANY) return count ? weights[count - 1] : 0;
  const place = 0.99 * (count - 1), low = Math.floor(place);
  return weights[low] + (weights[Math.min(low + 1, count - 1)] - weights[low]) * (place - low);
}

/**
 * The cells without the first key; under "renormalised" the others of each row sum to 1.
 * @param {Cells} cells
 * @param {ScaleName} name
 * @returns {Cells}
 */
export function withoutFirst(cells, name) {
  if ((name !== "hidden" && name !== "renormalised") || cells.firstColumn < 0) return cells;
  const { R, C, firstColumn } = cells, values = cells.values.slice();
  for (let row = 0; row < R; row++) {
    const line = values.subarray(row * C, (row + 1) * C);
    line[firstColumn] = 0;
    if (name === "hidden") continue;
    let sum = 0;
    for (const value of line) sum += value;
    if (sum > 0) for (let i = 0; i < C; i++) line[i] /= sum;
  }
  return { ...cells, values };
}

/** The number of a weight's colour among `count`. @param {Scale} scale @param {number} value @param {number} count */
export const colourNumber = (scale, value, count) => Math.round(scale.level(value) * (count - 1));

/** The colour of a weight; null for 0, which is masked. @param {Overview} overview @param {Scale} scale @param {number} value @returns {RGB | null} */
export function colourOf(overview, scale, value) {
  if (value === 0) return null;
  const { sequential, nan } = overview.colours;
  return Number.isNaN(value) ? nan : sequential[colourNumber(scale, value, sequential.length)];
}

/** @param {RGB} rgb */
export const css = (rgb) => `rgb(${rgb[0]} ${rgb[1]} ${rgb[2]})`;

/** Black or white, whichever is easier to read on a colour. @param {RGB} rgb */
export function inkOn(rgb) {
  const [red, green, blue] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/**
 * One pixel per cell; masked cells are transparent. Built once for each head and scale.
 * @param {Overview} overview
 * @param {Cells} cells
 * @param {Scale} scale
 */
export function pixelsOf(overview, cells, scale) {
  const { sequential, nan } = overview.colours, table = sequential.map((one) => packed(one)), broken = packed(nan);
  const canvas = create("canvas", { width: Math.max(1, cells.C), height: Math.max(1, cells.R) });
  paintCells(canvas, cells.values, (value) => (value === value ? table[colourNumber(scale, value, table.length)] : broken));
  return canvas;
}

/** A colour as one pixel. @param {RGB} rgb @param {number} [alpha] */
export const packed = ([red, green, blue], alpha = 255) => ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/** Paint a canvas, one pixel for each number; 0 is transparent. @param {HTMLCanvasElement} canvas @param {Numbers} values @param {(value: number) => number} colour */
export function paintCells(canvas, values, colour) {
  const image = new ImageData(canvas.width, canvas.height), pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < values.length; i++) if (values[i] !== 0) pixels[i] = colour(values[i]);
  canvas.getContext("2d")?.putImageData(image, 0, 0);
}

/** A weight with three decimals, or two significant digits if it is small. @param {number} value */
export function weightText(value) {
  if (Number.isNaN(value)) return "NaN";
  return value >= 0.001 || value === 0 ? value.toFixed(3) : value.toExponential(1);
}

/** A weight with two significant digits. @param {number} weight */
export function shortWeight(weight) {
  if (weight === 0) return "0";
  return weight < 1e-6 ? weight.toExponential(1) : String(Number(weight.toPrecision(2)));
}
