// Where answers come from: the elements of a file, the kernel behind a widget. Each is an object of asynchronous requests.

import { answerFromBytes, numbersFrom } from "./arrays.js";

/** @typedef {(ask: string, request: any) => Promise<Answer>} Ask */

/** A source from one function that answers all requests. @param {Ask} ask @returns {Source} */
function sourceOf(ask) {
  return {
    overview: () => ask("overview", {}),
    head: (request) => ask("head", request),
    rectangle: (request) => ask("rectangle", request),
    explain: (request) => ask("explain", request),
    effect: (request) => ask("effect", request),
    compare: (request) => ask("compare", request),
  };
}

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
function notStored(name) {
  return { key: "not-stored", text: {
    en: `This file does not hold ${name}. In a notebook, trace.widget() computes it when asked.`,
    zh: `此文件没有保存 ${name}。在笔记本中用 trace.widget() 打开，即可当场计算。`,
  } };
}

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

/**
 * Answers of the kernel: `{id, ask, ...request}` is sent, `{id, about, arrays: [{name, dtype, shape}]}` with buffers, or
 * `{id, error: {key, text}}`, comes back.
 * @param {{send(message: any): void, on(name: string, listener: Function): void, off(name: string, listener: Function): void}} model
 * @param {number} [patience]  milliseconds until a request without an answer fails; the first answer may take any time
 * @returns {Source & {close(): void}}
 */
export function widgetSource(model, patience = 20000) {
  let last = 0;
  /** @type {Map<number, {resolve: (answer: Answer) => void, reject: (error: any) => void, timer: number}>} */
  const waiting = new Map();
  const receive = (/** @type {any} */ message, /** @type {(DataView | ArrayBuffer)[]} */ buffers) => {
    const asked = waiting.get(message?.id);
    if (!asked) return;
    waiting.delete(message.id);
    clearTimeout(asked.timer);
    if (message.error) { asked.reject(message.error); return; }
    /** @type {Record<string, Numbers>} */
    const arrays = {};
    message.arrays.forEach((/** @type {{name: string, dtype: string}} */ one, /** @type {number} */ i) => {
      arrays[one.name] = numbersFrom(buffers[i], one.dtype);
    });
    asked.resolve({ about: message.about, arrays });
  };
  model.on("msg:custom", receive);
  const source = sourceOf((ask, request) => new Promise((resolve, reject) => {
    const id = ++last, giveUp = () => { waiting.delete(id); reject(noAnswer()); };
    const timer = ask === "overview" ? 0 : window.setTimeout(giveUp, patience);
    waiting.set(id, { resolve, reject, timer });
    model.send({ id, ask, ...request });
  }));
  const close = () => {
    model.off("msg:custom", receive);
    for (const { timer } of waiting.values()) clearTimeout(timer);
  };
  return { ...source, close };
}

/** @returns {Failure} */
export function noAnswer() {
  return { key: "no-answer", text: {
    en: "The kernel does not answer: wait while it is busy; if it was restarted, run this cell again.",
    zh: "内核没有应答：如果它正忙，请稍等；如果它已经重启，请重新运行这个单元格。",
  } };
}

/**
 * The same source with its last answers kept; equal requests under way are sent once. Failures are not kept.
 * @param {Source} source
 * @param {number} [most]  the number of answers kept
 * @returns {Source}
 */
export function cached(source, most = 64) {
  /** @type {Map<string, Promise<Answer>>} */
  const kept = new Map();
  return sourceOf((ask, request) => {
    const send = /** @type {any} */ (source)[ask], name = `${ask} ${JSON.stringify(request)}`;
    if (ask === "effect") return send(request);
    const found = kept.get(name) ?? send(request);
    kept.delete(name);  // the newest stands last
    kept.set(name, found);
    found.catch(() => kept.delete(name));
    if (kept.size > most) kept.delete(kept.keys().next().value ?? "");
    return found;
  });
}
