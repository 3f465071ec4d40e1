// Pictures for papers: their widths and fonts, and the parts that several of them have.

import { clamp } from "./dom.js";
import { cellLabel } from "./labels.js";
import { times } from "./pooling.js";
import { css } from "./scale.js";

/** One column of a paper and two, and the height of a row, in CSS pixels; and the fonts, as views/explorer/still.py names them. */
export const NARROW = 340;
export const WIDE = 700;
export const ROW = 20;
/** The height of a head's stripe under a word, with the space to the next. */
export const STRIPE = 5;
export const FONTS = "'Noto Sans', 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', 'Noto Sans CJK SC', 'Source Han Sans SC', 'PingFang SC', 'Microsoft YaHei', sans-serif";

/**
 * A text in lines that are at most so wide: broken at spaces, and between characters of Chinese and Japanese, but not
 * before punctuation that closes.
 * @param {Pen} ruler @param {string} text @param {number} wide @param {number} size @returns {string[]}
 */
export function linesOf(ruler, text, wide, size) {
  const lines = [""];
  for (const part of text.match(/(?:[\u2e80-\u9fff\uff00-\uffef]|[^\s\u2e80-\u9fff\uff00-\uffef]+)[、。」』）！，．：；？]*\s*|\s+/gu) ?? []) {
    if (lines[lines.length - 1] && ruler.width(lines[lines.length - 1] + part.trimEnd(), size) > wide) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines.map((line) => line.trimEnd()).filter(Boolean);
}

/** Words one after the other in lines, each in its box. @typedef {{text: string, fill?: string, colour?: string, edge?: string, faint?: boolean, gap?: number, stripes?: {colour: string, level: number}[]}} Word */

/** The place of each word, and the height of all. @param {Pen} ruler @param {Word[]} words @param {number} wide */
export function flowOf(ruler, words, wide) {
  const pitch = 25 + STRIPE * Math.max(0, ...words.map(({ stripes }) => stripes?.length ?? 0));
  let x = 0, y = 0;
  const boxes = words.map((word) => {
    const width = Math.min(wide, ruler.width(word.text, 13) + 8);
    if (word.gap) [x, y] = [0, y + (x ? pitch : 0) + word.gap];
    else if (x && x + width > wide) [x, y] = [0, y + pitch];
    const box = { ...word, x, y, width };
    x += width + 3;
    return box;
  });
  return { boxes, height: y + (words.length ? pitch : 0) };
}

/** @param {Explorer} explorer @param {Pen} pen @param {ReturnType<typeof flowOf>} flow @param {number} left @param {number} top */
export function drawFlow(explorer, pen, { boxes }, left, top) {
  for (const { text, x, y, width, fill, colour, edge, faint, stripes } of boxes) {
    pen.rect(left + x, top + y + 1, width, 21, fill || null, edge && explorer.colour(edge), 2);
    pen.text(text, left + x + width / 2, top + y + 11.5, { size: 13, fill: (fill && colour) || explorer.colour(faint ? "quiet" : "ink"), align: "center", most: width });
    stripes?.forEach((one, i) => pen.line([left + x, top + y + 24 + STRIPE * i, left + x + width, top + y + 24 + STRIPE * i], one.colour, STRIPE - 1, one.level));
  }
}

/** A list of bars, as `fillBars` shows it. @param {Explorer} explorer @param {Pen} pen @param {import("./bars.js").Bar[]} bars @param {number} left @param {number} top @param {number} wide */
export function drawBars(explorer, pen, bars, left, top, wide) {
  const ink = explorer.colour("ink");
  bars.forEach(({ label, share, text, before, chosen }, i) => {
    const y = top + i * ROW, long = (/** @type {number} */ one) => wide * clamp(one || 0, 0, 1), weight = chosen ? 650 : 400;
    pen.rect(left, y + 1, long(share), ROW - 2, explorer.colour("accent-soft"));
    if (before !== undefined) pen.line([left + long(before), y + 1, left + long(before), y + ROW - 1], explorer.colour("mark"), 2);
    const shown = pen.width(text, 12, weight);
    pen.text(label, left + 6, y + ROW / 2, { size: 12, weight, fill: ink, most: wide - shown - 20 });
    pen.text(text, left + wide - 6, y + ROW / 2, { size: 12, weight, fill: ink, align: "right" });
  });
}

/**
 * A bar of colours over its numbers, under what it shows. 42 pixels high.
 * @param {Explorer} explorer @param {Pen} pen @param {string} title @param {string[]} colours @param {[number, string][]} ticks
 * @param {number} left @param {number} top @param {number} wide
 */
export function drawRamp(explorer, pen, title, colours, ticks, left, top, wide) {
  const ink = explorer.colour("ink"), step = wide / colours.length;
  pen.text(title, left, top + 6, { size: 11, fill: ink });
  colours.forEach((fill, i) => pen.rect(left + i * step, top + 15, Math.min(step + 0.5, wide - i * step), 9, fill));
  ticks.forEach(([at, text], i) => {
    const align = i === 0 ? "left" : i === ticks.length - 1 ? "right" : "center";
    pen.text(text, left + at * wide, top + 33, { size: 10, fill: ink, align });
  });
}

/** The colours of the sequential scale, from small to large. @param {Overview} overview @param {number} [steps] */
export function rampColours({ colours: { sequential } }, steps = 64) {
  return times(steps, (i) => css(sequential[Math.round(i / (steps - 1) * (sequential.length - 1))]));
}

/** A sample of a colour, or of stripes where there is none, and its meaning. @typedef {{fill: string | null, text: string, hatched?: boolean}} Sample */

/** Samples in lines, and how high they are. @param {Pen} ruler @param {Sample[]} samples @param {number} wide */
export function samplesOf(ruler, samples, wide) {
  let x = 0, y = 0;
  const placed = samples.map((sample) => {
    const width = 36 + ruler.width(sample.text, 11);
    if (x && x + width > wide) [x, y] = [0, y + 18];
    x += width;
    return { ...sample, x: x - width, y };
  });
  return { placed, height: samples.length ? y + 18 : 0 };
}

/** @param {Explorer} explorer @param {Pen} pen @param {ReturnType<typeof samplesOf>} samples @param {number} left @param {number} top */
export function drawSamples(explorer, pen, { placed }, left, top) {
  for (const { fill, text, x, y, hatched } of placed) {
    if (fill && hatched) pen.clip(left + x, top + y + 4, 16, 10, () => hatch(pen, left + x, top + y + 4, 16, 10, fill, 6));
    else if (fill) pen.rect(left + x, top + y + 4, 16, 10, fill);
    else striped(explorer, pen, left + x, top + y + 4, 16, 10);
    pen.text(text, left + x + 21, top + y + 9, { size: 11, fill: explorer.colour("ink") });
  }
}

/** What is masked. @param {Explorer} explorer @param {Pen} pen @param {number} left @param {number} top @param {number} width @param {number} height */
export function striped(explorer, pen, left, top, width, height) {
  pen.rect(left, top, width, height, explorer.colour("hidden"));
  pen.clip(left, top, width, height, () => hatch(pen, left, top, width, height, explorer.colour("hatch")));
}

/** @param {Pen} pen @param {number} left @param {number} top @param {number} width @param {number} height @param {string} colour @param {number} [apart] */
export function hatch(pen, left, top, width, height, colour, apart = 7) {
  for (let d = 0; d < width + height; d += apart) pen.line([left + d, top, left + d - height, top + height], colour, 1);
}

/** A number with the digits that a half float has. @param {number} value */
export const digits = (value) => (Number.isNaN(value) ? null : Number(value.toPrecision(5)));

/** The weights on screen with their labels. @param {Explorer} explorer @param {Cells} cells @returns {Table} */
export function weightsTable(explorer, cells) {
  const { R, C, values, rowStarts, colStarts } = cells, { layer, head, merge, scale } = explorer.state.get(), record = explorer.record();
  const queries = times(R, (r) => cellLabel(explorer.axes(), cells, "query", r)), keys = times(C, (c) => cellLabel(explorer.axes(), cells, "key", c));
  const weights = times(R, (r) => Array.from(values.subarray(r * C, (r + 1) * C), digits));
  return {
    columns: ["", ...keys], rows: weights.map((line, r) => [queries[r], ...line.map((value) => value ?? "NaN")]),
    about: {
      layer: record.name, index: layer, head, kind: record.kind, unit: merge, scale, queries, keys,
      query_starts: Array.from(rowStarts).slice(0, R), key_starts: Array.from(colStarts).slice(0, C), weights,
    },
  };
}

/** Rows under columns; in JSON, objects. @param {Explorer} explorer @param {string[]} columns @param {(string | number | null)[][]} rows @param {object} [more] @returns {Table} */
export function tableOf(explorer, columns, rows, more = {}) {
  const { layer, head } = explorer.state.get(), listed = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
  return { columns, rows, about: { layer: explorer.record().name, index: layer, head, ...more, rows: listed } };
}
