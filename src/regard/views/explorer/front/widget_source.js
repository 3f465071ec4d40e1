// The source of a widget: the kernel answers.

import { numbersFrom } from "./arrays.js";
import { sourceOf } from "./sources.js";

/**
 * Answers of the kernel: `{id, ask, ...request}` is sent, `{id, about, arrays: [{name, dtype, shape}]}` with buffers, or
 * `{id, error: {key, text}}`, comes back.
 * @param {{send(message: any): void, on(name: string, listener: Function): void, off(name: string, listener: Function): void}} model
 * @returns {Source & {close(): void}}
 */
export function widgetSource(model) {
  let last = 0;
  /** @type {Map<number, {resolve: (answer: Answer) => void, reject: (error: any) => void}>} */
  const waiting = new Map();
  const receive = (/** @type {any} */ message, /** @type {(DataView | ArrayBuffer)[]} */ buffers) => {
    const asked = waiting.get(message?.id);
    if (!asked) return;
    waiting.delete(message.id);
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
    waiting.set(++last, { resolve, reject });
    model.send({ id: last, ask, ...request });
  }));
  return { ...source, close: () => model.off("msg:custom", receive) };
}
