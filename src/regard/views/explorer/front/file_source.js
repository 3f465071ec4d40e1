// The source of a file: answers stored in its elements.

import { answerFromBytes } from "./arrays.js";
import { stagesOf } from "./arithmetic.js";
import { counted, times } from "./pooling.js";
import { sourceOf } from "./sources.js";

/**
 * Answers stored in a document, each in a script element `regard-…`, compressed by deflate, in base64.
 * @param {Document} page
 * @returns {Source}
 */
export function fileSource(page) {
  const read = async (/** @type {string} */ name) => {
    const element = page.getElementById(`regard-${name}`);
    if (!element) throw notStored(name);
    return answerFromBytes(await inflated(element.textContent));
  };
  /** Other answers need it again. @type {Promise<Answer> | null} */
  let overview = null;
  const stored = (/** @type {string} */ name) => (name === "overview" ? overview ??= read(name) : read(name));
  return sourceOf((ask, request) => {
    const { layer, head } = request;
    if (ask === "overview") return stored("overview");
    if (ask === "rectangle") return storedRectangle(stored, request);
    if (ask === "explain") return storedNumbers(stored, request);
    return stored(`${ask}-${layer}-${head}`);
  });
}

/** @param {string} base64 @returns {Promise<ArrayBuffer>} */
async function inflated(base64) {
  const packed = Uint8Array.from(atob(base64.trim()), (sign) => sign.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/** @param {string} name @returns {Failure} */
const notStored = (name) => ({ key: "not-stored", values: { name } });

/**
 * The finest stored level that shows a region, not finer than asked; else the one with the largest overlap.
 * @param {(name: string) => Promise<Answer>} stored
 * @param {RectangleRequest} request
 * @returns {Promise<Answer>}
 */
async function storedRectangle(stored, { layer, head, rows, cols, most }) {
  const { about } = await stored("overview");
  const levels = /** @type {Level[]} */ (about.levels ?? []).filter((one) => one.layer === layer && one.head === head);
  const shared = (/** @type {Span} */ a, /** @type {Span} */ b) => Math.max(0, Math.min(a[1], b[1]) - Math.max(a[0], b[0]));
  const coarsest = Math.max(1, (rows[1] - rows[0]) / most[0], (cols[1] - cols[0]) / most[1]);
  const value = (/** @type {Level} */ one) => shared(one.rows, rows) * shared(one.cols, cols) / Math.max(coarsest, one.high, one.wide);
  const best = levels.reduce((a, b) => (a && value(a) >= value(b) ? a : b), /** @type {Level | null} */ (null));
  if (!best || value(best) === 0) throw notStored(`${rows.join("–")} × ${cols.join("–")}`);
  const { arrays, about: own } = await stored(`level-${best.id}`);
  const exact = best.high === 1 && best.wide === 1;
  return { about: { ...best, ...own, exact, note: exact ? null : "stored" }, arrays };
}

/** @param {(name: string) => Promise<Answer>} stored @param {{layer: number, head: number, query: number, most: number}} request */
async function storedNumbers(stored, { layer, head, query, most }) {
  const { about } = await stored("overview"), name = `numbers-${layer}-${head}`, listed = about.records[layer].can.queries?.[head];
  if (!listed) return oneQuery(await stored(name), query, most);
  const { about: one, arrays } = await stored(`${name}-${query}`);
  return picked({ ...one, code: codeOf(one, arrays) }, arrays, arrays.weights, arrays.visible, one.keys, most);
}

/** The NumPy code with the numbers of one query. @param {any} about @param {Record<string, Numbers>} arrays */
function codeOf({ code, E, Ev }, { q, k, v, bias, visible }) {
  const S = visible.length, inputs = [...literal("Q", q, E), ...literal("K", k, E), ...(v ? literal("V", v, Ev) : []), ...(bias ? literal("bias", bias, S) : []), ...literal("visible", visible, S, ", dtype=bool")].join("\n");
  const filled = (/** @type {string} */ text) => text.replace("{inputs}", () => inputs);
  return { en: filled(code.en), zh: filled(code.zh) };
}

/** One query's arithmetic from q, k and v of all queries, with the keys of the largest weights. @param {Answer} all @param {number} query @param {number} most @returns {Answer} */
function oneQuery({ about, arrays }, query, most) {
  const { E } = about, { k, v, visible } = arrays, S = k.length / E, row = (/** @type {Numbers} */ numbers, /** @type {number} */ wide) => numbers.subarray(query * wide, (query + 1) * wide);
  const bias = arrays.bias && row(arrays.bias, S), own = { q: row(arrays.q, E), k, v, visible: row(visible, S), ...(bias && { bias }) };
  const { largest, ...stages } = stagesOf(about, own), { reason = "", labels } = about;
  return picked({
    ...about, query, largest: Number.isFinite(largest) ? largest : null, code: codeOf(about, own), rest: { keys: 0, weight: 0, reason },
    labels: { query: labels.queries?.[query] ?? String(query), keys: times(S, (key) => labels.keys?.[key] ?? String(key)) },
  }, { ...own, ...stages }, stages.weights, own.visible, counted(S), most);
}

/** What of an answer has one entry for each key. */
const BY_KEY = ["k", "v", "dots", "scaled", "masked", "exps", "weights", "visible", "bias"];

/** An answer with the keys of the largest weights only. @param {any} about @param {Record<string, Numbers>} arrays @param {Numbers} weights @param {Numbers} visible @param {number[]} keys @param {number} most @returns {Answer} */
function picked(about, arrays, weights, visible, keys, most) {
  const order = Array.from(weights.keys()).sort((a, b) => visible[b] - visible[a] || weights[b] - weights[a] || a - b), chosen = order.slice(0, most).sort((a, b) => a - b);
  const left = order.slice(most).filter((at) => visible[at]), rest = about.rest, found = { ...arrays };
  for (const name of BY_KEY) {
    const all = arrays[name], wide = all && all.length / weights.length;
    if (all) found[name] = Object.assign(new /** @type {any} */ (all.constructor)(chosen.length * wide), chosen.flatMap((at) => Array.from(all.subarray(at * wide, (at + 1) * wide))));
  }
  return {
    about: {
      ...about, keys: chosen.map((at) => keys[at]), labels: { query: about.labels.query, keys: chosen.map((at) => about.labels.keys[at]) },
      rest: { ...rest, keys: rest.keys + left.length, weight: rest.weight + left.reduce((sum, at) => sum + weights[at], 0) },
    },
    arrays: found,
  };
}

/** `name = np.array(...)`, a row a line. @param {string} name @param {Numbers} values @param {number} wide @param {string} [more] */
function literal(name, values, wide, more = "") {
  const text = (/** @type {number} */ x) => (Number.isFinite(x) ? String(x) : Number.isNaN(x) ? "np.nan" : x < 0 ? "-np.inf" : "np.inf"), lines = [];
  for (let at = 0; at < values.length; at += wide) lines.push(`    [${Array.from(values.subarray(at, at + wide), text).join(", ")}],`);
  return [`${name} = np.array([`, ...lines, `]${more})`];
}
