// Names of layers, heads, tokens and positions.

import { cellAt, times } from "./pooling.js";

/** The tokens of a cell that are named one by one. */
const FEW = 3;

/** A text with its values filled in. @param {string} text @param {Values} values */
export const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => (values[name] >= 1e4 ? values[name].toLocaleString("en") : String(values[name] ?? "")));

/**
 * The two sides of a record's map, in tokens, characters or words.
 * @param {Overview} overview
 * @param {Attention} record
 * @param {Merging} merge
 * @returns {Axes}
 */
export function axesOf(overview, record, merge) {
  const labels = record.labels[merge] ?? record.labels.tokens;
  const list = (/** @type {number | null | undefined} */ index) => (index === null || index === undefined ? null : overview.labels[index]);
  return {
    query: axisOf("query", record.T, record.part?.top ?? 0, list(labels.queries), labels.queryGroups, list(labels.written)),
    key: axisOf("key", record.S, record.part?.left ?? 0, list(labels.keys), labels.keyGroups),
  };
}

/**
 * @param {"query" | "key"} side
 * @param {number} length
 * @param {number} start  the position of the first token in the whole map
 * @param {string[] | null} labels
 * @param {number[]} [groups]  the first position of each unit
 * @param {string[] | null} [written]
 * @returns {Axis}
 */
export function axisOf(side, length, start, labels, groups, written = null) {
  const count = groups ? groups.length : length;
  const starts = groups ? [...groups, length] : null;
  const unitOf = (/** @type {number} */ position) => (starts ? cellAt(starts, position) : position);
  const positionOf = (/** @type {number} */ unit) => (starts ? starts[Math.min(count, Math.max(0, unit))] : unit);
  const one = (/** @type {number} */ unit) => (written?.[unit] && labels ? `${isolatedText(labels[unit])} → ${isolatedText(written[unit])}` : labels?.[unit] ?? "");
  const place = (/** @type {number} */ unit, /** @type {number} */ stop) => {
    const first = start + positionOf(unit), last = start + positionOf(Math.min(count, stop)) - 1;
    return last > first ? `${first}–${last}` : `${first}`;
  };
  const words = (/** @type {number} */ unit, /** @type {number} */ stop) => (labels?.[unit] !== undefined && stop - unit <= FEW ? times(Math.min(count, stop) - unit, (i) => one(unit + i)).join(" ") : "");
  const name = (/** @type {number} */ unit, stop = unit + 1) => [words(unit, stop), place(unit, stop)].reduce((text, at) => (text ? `${text} (${at})` : at));
  const label = (/** @type {number} */ unit, stop = unit + 1) => words(unit, stop) || place(unit, stop);
  return { side, count, labels, written, unitOf, positionOf, label, name, at: (position) => label(unitOf(position)) };
}

/**
 * The axes with the labels of a rectangle, where its cells are single tokens and the whole has no labels.
 * @param {Attention} record @param {Axes} axes
 * @param {{rows: Span, cols: Span, labels?: Record<"queries" | "keys" | "written", string[] | null>}} part
 * @returns {Axes}
 */
export function axesOfPart({ T, S, part }, axes, { rows, cols, labels }) {
  const from = (/** @type {number} */ start, /** @type {string[] | null | undefined} */ list) => {
    const found = /** @type {string[]} */ ([]);
    list?.forEach((one, i) => { found[start + i] = one; });
    return list ? found : null;
  };
  const [queries, keys] = [from(rows[0], labels?.queries), from(cols[0], labels?.keys)];
  return {
    query: queries && !axes.query.labels ? axisOf("query", T, part?.top ?? 0, queries, undefined, from(rows[0], labels?.written)) : axes.query,
    key: keys && !axes.key.labels ? axisOf("key", S, part?.left ?? 0, keys) : axes.key,
  };
}

/** What part of the map is visible, in words. @param {Explorer} explorer @param {Axes} axes @param {{rows: Span, cols: Span}} part */
export function partText({ say }, { query, key }, { rows, cols }) {
  const name = (/** @type {Axis} */ axis, /** @type {Span} */ [start, stop]) => axis.name(Math.floor(start), Math.max(Math.floor(start) + 2, Math.ceil(stop)));
  return say("part", { rows: name(query, rows), cols: name(key, cols), T: query.count, S: key.count });
}

/** The position of the second text of a pair, as BERT and RoBERTa separate them; null where there is one text. @param {Overview} overview @param {Attention} record */
export function secondText({ labels }, { kind, T, S, part, labels: { tokens } }) {
  const texts = kind === "cross" || kind === "decoder" || T !== S || part || tokens.keys === null ? [] : labels[tokens.keys], ends = texts.map((one) => one === "[SEP]" || one === "</s>");
  const start = ends.findIndex((end, i) => !end && ends[i - 1]);
  return start > 0 && ends.indexOf(true, start) > 0 ? start : null;
}

/** Words of these scripts are written downwards where there is little space; others are rotated. */
const UPRIGHT = /^[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\u3000-\u303f\uff00-\uffef]+$/u;

const FROM_THE_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

/** The direction of a text: that of its first token with a letter. @param {string[]} labels */
export const directionOf = (labels) => (FROM_THE_RIGHT.test(labels.find((one) => /\p{L}/u.test(one)) ?? "") ? "rtl" : "ltr");

/** A text that does not change the direction of the text around it. @param {string} text */
const isolatedText = (text) => (FROM_THE_RIGHT.test(text) ? `\u2068${text}\u2069` : text);

/** The characters of a label written downwards, or null where it must be rotated. @param {string} label */
export function downwards(label) {
  const parts = label.split(" → ");
  if ([...label].length === 1) return [label];
  return parts.every((part) => UPRIGHT.test(part)) ? parts.flatMap((part, i) => (i ? ["↓", ...part] : [...part])) : null;
}

/** What a head does, in words. @param {Explorer} explorer @param {string | null | undefined} pattern */
function patternName(explorer, pattern) {
  const [family, count] = patternFamily(pattern);
  return explorer.say(`pattern-${family}`, { count, name: pattern ?? "" });
}

const FAMILIES = ["previous", "itself", "first", "same", "induction", "local", "separator", "alignment"];

/** The family of a pattern and its distance: "back-3" is ["back", 3]. @param {string | null | undefined} pattern @returns {[string, number]} */
export function patternFamily(pattern) {
  if (!pattern) return ["none", 0];
  if (FAMILIES.includes(pattern)) return [pattern, 0];
  const [, family, count] = /^(back|ahead)-(\d+)$/.exec(pattern) ?? /^(induction)([+-]\d+)$/.exec(pattern) ?? ["", "other", "0"];
  return [family === "induction" ? "shifted" : family, Number(count)];
}

/** What a head does, with its score. @param {Explorer} explorer @param {Attention} record @param {number} head */
export function headDoes(explorer, { measures: { pattern, score } }, head) {
  return pattern[head] ? explorer.say("does", { pattern: patternName(explorer, pattern[head]), score: percent(score[head]) }) : explorer.say("does-nothing");
}

/** "layer 3 · head 5" in the current language. @param {Explorer} explorer @param {number} layer @param {number} head */
export function headTitle(explorer, layer, head) {
  return `${explorer.record(layer).titles[explorer.state.get().lang]} · ${explorer.say("head")} ${head}`;
}

/** A share in whole percent. @param {number} share */
export const percent = (share) => Math.round(100 * share);

/** The positions at which rows or columns of cells begin, and the end. @param {Cells} cells @param {Side} side */
export const startsOn = (cells, side) => (side === "query" ? cells.rowStarts : cells.colStarts);

/** The units of a row or column of cells. @param {Axis} axis @param {ArrayLike<number>} starts @param {number} index @returns {Span} */
export const unitsOf = (axis, starts, index) => [axis.unitOf(starts[index]), axis.unitOf(starts[index + 1] - 1) + 1];

/** The name of a row or column of cells: its token and position, or its positions. @param {Axes} axes @param {Cells} cells @param {Side} side @param {number} index */
export const cellName = (axes, cells, side, index) => axes[side].name(...unitsOf(axes[side], startsOn(cells, side), index));

/** The label alone, or the positions where there is none or a cell covers many tokens. @param {Axes} axes @param {Cells} cells @param {Side} side @param {number} index */
export function cellLabel(axes, cells, side, index) {
  return axes[side].label(...unitsOf(axes[side], startsOn(cells, side), index));
}
