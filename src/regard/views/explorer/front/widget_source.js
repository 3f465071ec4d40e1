// The source of a widget: the kernel answers.

import { numbersFrom } from "./arrays.js";
import { sourceOf } from "./sources.js";

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
