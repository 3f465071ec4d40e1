// One query's attention as columns of numbers: what each step computes, and from which cells.

import { bracketed, spell } from "./number_text.js";

/**
 * A column holds for each key a number or, `vector`, a vector. `total` is the cell below it.
 * @typedef {{id: string, vector: boolean, width: number, values: Float64Array, total: {id: string, values: Float64Array} | null}} Column
 *
 * A cell: its column, the key's number ("top" for the query, "total" below the keys), and a dimension of a vector.
 * @typedef {{column: string, row: number | "top" | "total", at: number | null}} Cell
 *
 * `rest` counts the keys that are not listed, and their weight.
 * @typedef {{E: number, q: Float64Array, names: string[], query: string, rest: {keys: number, weight: number, reason: string},
 *   scale: number | null, softcap: number | null, visible: ArrayLike<number>, largest: number,
 *   columns: Map<string, Column>, steps: {id: string, column: string}[]}} Arithmetic
 */

/** The longest sum that is written out in full. */
const TERMS = 4;

/** The calculation of an `explain` answer. @param {Answer} answer @returns {Arithmetic} */
export function arithmeticOf({ about, arrays }) {
  const { E, softcap = null } = about, doubles = (/** @type {string} */ name) => (arrays[name] ? Float64Array.from(arrays[name]) : null);
  const { dots, scaled, bias, visible, masked, exps, sum, weights } = /** @type {Record<string, Float64Array>} */ (/** @type {unknown} */ (arrays));
  const [q, k] = /** @type {Float64Array[]} */ ([doubles("q"), doubles("k")]), v = doubles("v"), output = doubles("output");
  const largest = about.largest ?? (masked.some(Number.isNaN) ? NaN : -Infinity);
  /** @type {Arithmetic} */
  const all = {
    E, q, largest, visible, names: about.labels.keys, query: about.labels.query, scale: about.scale ?? null,
    softcap, rest: about.rest ?? { keys: 0, weight: 0, reason: "" }, columns: new Map(), steps: [],
  };
  const add = (/** @type {string} */ id, /** @type {Float64Array} */ values, width = 0, step = id) => {
    const column = { id, values, vector: width > 0, width: width || 1, total: null };
    all.columns.set(id, column);
    if (step) all.steps.push({ id: step, column: id });
    return /** @type {Column} */ (column);
  };
  add("k", k, E, "vectors");
  add("products", k.map((x, i) => x * q[i % E]), E);
  add("scores", dots);
  let last = add("scaled", scaled);
  if (softcap !== null) last = add("capped", scaled.map((x) => softcap * Math.tanh(x / softcap)));
  if (bias) last = add("biased", last.values.map((x, i) => x + bias[i]));
  if (Array.from(visible).some((seen) => !seen)) last = add("masked", masked);
  last.total = { id: "largest", values: Float64Array.of(largest) };
  add("shifted", masked.map((x) => (largest === -Infinity ? x : x - largest)));
  add("powers", exps).total = { id: "sum", values: Float64Array.from(sum) };
  all.steps.push({ id: "sums", column: "powers" });
  add("weights", weights);
  if (!v || !output) return all;
  const wide = output.length;
  add("v", v, wide, "");
  add("weighted", v.map((x, i) => (weights[Math.floor(i / wide)] ? x * weights[Math.floor(i / wide)] : 0)), wide)
    .total = { id: "output", values: output };
  all.steps.push({ id: "output", column: "weighted" });
  return all;
}

/**
 * Every step of one query, as views/explorer/numbers.py computes it: S keys with E numbers each.
 * @param {{E: number, scale: number | null, softcap: number | null}} settings
 * @param {{q: Numbers, k: Numbers, v?: Numbers, bias?: Numbers, visible: Numbers}} arrays
 */
export function stagesOf({ E, scale, softcap }, { q, k, v, bias, visible }) {
  const S = visible.length, dots = new Float64Array(S), over = (/** @type {(key: number) => number} */ step) => Float64Array.from({ length: S }, (_, key) => step(key));
  for (let at = 0; at < S * E; at++) dots[Math.floor(at / E)] += q[at % E] * k[at];
  const scaled = over((key) => (scale === null ? dots[key] / Math.sqrt(E) : dots[key] * scale));
  const capped = softcap === null ? scaled : over((key) => softcap * Math.tanh(scaled[key] / softcap));
  const masked = over((key) => (visible[key] ? capped[key] + (bias ? bias[key] : 0) : -Infinity)), largest = masked.reduce((a, b) => Math.max(a, b), -Infinity);
  const exps = over((key) => Math.exp(masked[key] - (largest === -Infinity ? 0 : largest))), total = exps.reduce((a, b) => a + b, 0);
  const weights = over((key) => exps[key] / (total || 1)), sum = Float64Array.of(total), found = { dots, scaled, masked, exps, weights, sum, largest };
  if (!v) return found;
  const wide = v.length / S, output = new Float64Array(wide);
  // A key with weight 0 adds nothing, but a visible value that is not finite makes the whole output NaN.
  v.forEach((/** @type {number} */ x, /** @type {number} */ at) => { const key = Math.floor(at / wide); if (Number.isFinite(x)) output[at % wide] += weights[key] * x; else if (visible[key]) output.fill(NaN); });
  return { ...found, output };
}

/** @param {Arithmetic} all @param {string} id */
export const columnOf = (all, id) => /** @type {Column} */ (all.columns.get(id));

/** The name of the column that a column is computed from. @param {Arithmetic} all @param {string} id */
function columnBefore(all, id) {
  const names = [...all.columns.keys()];
  return names[names.indexOf(id) - 1];
}

/** The columns that a step reads and writes. @param {Arithmetic} all @param {string} step */
export function columnsOfStep(all, step) {
  const several = { vectors: ["k"], sums: ["powers"], weighted: ["weights", "v", "weighted"], output: ["weights", "weighted"] };
  return new Set(/** @type {Record<string, string[]>} */ (several)[step] ?? [columnBefore(all, step), step]);
}

/** The vector or number of a cell. @param {Arithmetic} all @param {Cell} cell */
export function valuesOf(all, { column, row }) {
  const { values, width, total } = columnOf(all, column);
  if (row === "top") return all.q;
  return row === "total" ? total?.values ?? new Float64Array(width) : values.subarray(row * width, (row + 1) * width);
}

/** The cells from which a cell was computed. @param {Arithmetic} all @param {Cell} cell @returns {Cell[]} */
export function sourcesOf(all, { column: id, row, at }) {
  const cell = (/** @type {string} */ column, /** @type {Cell["row"]} */ from, dimension = at) => ({ column, row: from, at: dimension });
  if (row === "top" || id === "k" || id === "v") return [];
  if (row === "total") return all.names.map((_, i) => cell(id, i));
  const last = columnBefore(all, id);
  switch (id) {
    case "products": return [cell("k", "top"), cell("k", row)];
    case "weights": case "shifted": return [cell(last, row), cell(last, "total")];
    case "weighted": return [cell("weights", row, null), cell("v", row)];
    default: return [cell(last, row, null)];
  }
}

/** The arithmetic of one cell with its numbers. @param {Arithmetic} all @param {Cell} cell */
export function formulaOf(all, { column: id, row, at }) {
  const d = at ?? 0, value = valuesOf(all, { column: id, row, at })[d], equals = `= ${spell(value)}`;
  if (row === "total") return totalFormula(all, id, d);
  if (row === "top" || id === "k" || id === "v") return `[${d}] ${equals}`;
  const of = (/** @type {string} */ column) => valuesOf(all, { column, row, at })[columnOf(all, column).vector ? d : 0];
  const last = of(columnBefore(all, id)), cap = spell(all.softcap ?? NaN);
  switch (id) {
    case "products": return `${bracketed(all.q[d])} · ${bracketed(of("k"))} ${equals}`;
    case "scores": return `${dotTerms(all, row)} ${equals}`;
    case "scaled": return `${spell(last)} ${all.scale === null ? `/ ${spell(Math.sqrt(all.E))}` : `· ${bracketed(all.scale)}`} ${equals}`;
    case "capped": return `${cap} · tanh(${spell(last)} / ${cap}) ${equals}`;
    case "biased": return `${spell(last)} + ${bracketed(value - last)} ${equals}`;
    case "masked": return `${spell(last)} → ${spell(value)}`;
    case "shifted": return `${spell(last)} − ${bracketed(all.largest)} ${equals}`;
    case "powers": return `exp(${spell(last)}) ${equals}`;
    case "weights": return `${spell(last)} / ${spell(columnOf(all, "powers").total?.values[0] ?? NaN)} ${equals}`;
    default: return `${spell(of("weights"))} · ${bracketed(of("v"))} ${equals}`;
  }
}

/** The terms of q · k: of a long vector the largest, each with its dimension. @param {Arithmetic} all @param {number} row */
function dotTerms({ E, q, columns }, row) {
  const k = columns.get("k")?.values.subarray(row * E, (row + 1) * E) ?? q;
  if (E <= TERMS) return Array.from(k, (x, d) => `${bracketed(q[d])}·${bracketed(x)}`).join(" + ");
  const largest = [...k.keys()].sort((a, b) => Math.abs(q[b] * k[b]) - Math.abs(q[a] * k[a])).slice(0, TERMS - 1);
  return `${largest.map((d) => `${bracketed(q[d] * k[d])} [${d}]`).join(" + ")} + …`;
}

/** @param {Arithmetic} all @param {string} id @param {number} d */
function totalFormula(all, id, d) {
  const { total, values, width } = columnOf(all, id), equals = `= ${spell(total?.values[d] ?? NaN)}`;
  if (total?.id === "largest") return `max ${equals}`;
  const size = (/** @type {number} */ i) => Math.abs(values[i * width + d]);
  const whole = all.names.length <= TERMS && !all.rest.weight, rows = [...all.names.keys()];
  const shown = whole ? rows : rows.sort((a, b) => size(b) - size(a)).slice(0, TERMS - 1);
  const weight = columnOf(all, "weights").values, v = all.columns.get("v")?.values ?? values;
  const terms = shown.map((i) => (width > 1 || id === "weighted" ? `${spell(weight[i])}·${bracketed(v[i * width + d])}` : spell(values[i])));
  return `${[...terms, ...(whole ? [] : ["…"])].join(" + ")} ${equals}`;
}
