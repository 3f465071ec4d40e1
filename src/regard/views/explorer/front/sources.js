// Sources: objects of asynchronous requests, made from one function that answers all of them.

/** @typedef {(ask: string, request: any) => Promise<Answer>} Ask */

/** A source from one function that answers all requests. @param {Ask} ask @returns {any} */
export function sourceOf(ask) {
  const names = ["overview", "head", "rectangle", "explain", "effect", "compare"];
  return Object.fromEntries(names.map((name) => [name, (request = {}) => ask(name, request)]));
}

/**
 * A function that keeps the last results by name. Failures are not kept.
 * @template T
 * @param {number} most
 */
export function remembering(most) {
  /** @type {Map<string, Promise<T>>} */
  const kept = new Map();
  return (/** @type {string} */ name, /** @type {() => Promise<T>} */ make) => {
    const found = kept.get(name) ?? make();
    kept.delete(name);  // the newest stands last
    kept.set(name, found);
    found.catch(() => kept.delete(name));
    if (kept.size > most) kept.delete(kept.keys().next().value ?? "");
    return found;
  };
}

/** The same source with its last answers kept; equal requests under way are sent once. @param {Source} source @param {number} [most] @returns {Source} */
export function cached(source, most = 64) {
  const remember = remembering(most);
  return sourceOf((ask, request) => {
    const send = () => /** @type {any} */ (source)[ask](request);
    return ask === "effect" ? send() : remember(`${ask} ${JSON.stringify(request)}`, send);
  });
}
