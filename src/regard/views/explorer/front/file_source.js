// The source of a file: answers stored in its elements.

import { answerFromBytes } from "./arrays.js";
import { sourceOf } from "./sources.js";

/**
 * Answers stored in a document, each in a script element `regard-…`, compressed by deflate, in base64.
 * @param {Document} page
 * @returns {Source}
 */
export function fileSource(page) {
  const stored = async (/** @type {string} */ name) => {
    const element = page.getElementById(`regard-${name}`);
    if (!element) throw notStored(name);
    return answerFromBytes(await inflated(element.textContent ?? ""));
  };
  return sourceOf((ask, request) => {
    const { layer, head } = request;
    if (ask === "overview") return stored("overview");
    if (ask === "rectangle") return storedRectangle(stored, request);
    if (ask === "explain") return stored(`numbers-${layer}-${head}`).then((all) => oneQuery(all, request.query, request.most));
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

/** One query's arithmetic from that of all queries, with the keys of the largest weights. @param {Answer} all @param {number} query @param {number} most @returns {Answer} */
function oneQuery({ about, arrays }, query, most) {
  const { k, q, v, sum, output, ...others } = arrays, T = sum.length, S = arrays.weights.length / T, E = q.length / T;
  const row = (/** @type {Numbers} */ all, /** @type {number} */ wide) => all.subarray(query * wide, (query + 1) * wide);
  const weights = row(arrays.weights, S), visible = row(arrays.visible, S);
  const order = Array.from(weights.keys()).sort((a, b) => visible[b] - visible[a] || weights[b] - weights[a] || a - b);
  const keys = order.slice(0, most).sort((a, b) => a - b);
  const pick = (/** @type {Numbers} */ numbers, /** @type {number} */ wide) => {
    const found = new /** @type {any} */ (numbers.constructor)(keys.length * wide);
    keys.forEach((key, i) => found.set(numbers.subarray(key * wide, (key + 1) * wide), i * wide));
    return found;
  };
  const code = (/** @type {string} */ text) => text.replace("{inputs}", () => about.inputs).replace("{query}", String(query));
  const left = order.slice(most).filter((key) => visible[key]);
  const found = Object.fromEntries(Object.entries(others).map(([name, numbers]) => [name, pick(row(numbers, S), 1)]));
  return {
    about: {
      ...about, query, keys, largest: about.largest[query], code: { en: code(about.code.en), zh: code(about.code.zh) },
      rest: { keys: left.length, weight: left.reduce((total, key) => total + weights[key], 0), reason: about.reason ?? "" },
      labels: about.labels && { query: about.labels.queries?.[query], keys: keys.map((key) => about.labels.keys?.[key]) },
    },
    arrays: {
      ...found, q: row(q, E), k: pick(k, k.length / S), sum: sum.slice(query, query + 1),
      ...(v && { v: pick(v, v.length / S) }), ...(output && { output: row(output, output.length / T) }),
    },
  };
}
