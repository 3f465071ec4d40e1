// Sources: objects of asynchronous requests, made from one function that answers all of them.

/** @typedef {(ask: string, request: any) => Promise<Answer>} Ask */

/** A source from one function that answers all requests. @param {Ask} ask @returns {any} */
export function sourceOf(ask) {
  const names = ["overview", "head", "rectangle", "explain", "effect", "compare"];
  return Object.fromEntries(names.map((name) => [name, (request = {}) => ask(name, request)]));
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
