// The state of one view: a small store, and its text in an address.

/**
 * A store that tells its subscribers of all changes of one frame together.
 * @param {State} start
 * @returns {Store}
 */
export function createStore(start) {
  let state = start, frame = 0;
  /** @type {Set<string>} */
  let changed = new Set();
  /** @type {Set<(state: State, changed: Set<string>) => void>} */
  const listeners = new Set();
  const flush = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    const names = changed;
    changed = new Set();
    if (names.size) for (const listener of [...listeners]) listener(state, names);
  };
  return {
    get: () => state,
    flush,
    subscribe: (listener) => { listeners.add(listener); return () => { listeners.delete(listener); }; },
    set: (patch) => {
      const names = Object.keys(patch).filter((name) => !sameValue(/** @type {any} */ (state)[name], /** @type {any} */ (patch)[name]));
      if (!names.length) return;
      state = { ...state, ...patch };
      names.forEach((name) => changed.add(name));
      frame ||= requestAnimationFrame(flush);
    },
  };
}

/** @param {unknown} a @param {unknown} b @returns {boolean} */
function sameValue(a, b) {
  return Object.is(a, b) || (typeof a === "object" && typeof b === "object" && JSON.stringify(a) === JSON.stringify(b));
}

/** A function that awaits promises, of which only the newest one given counts: it calls `done` or `failed`. */
export function newest() {
  let turn = 0;
  /** @template T @param {Promise<T>} promise @param {(found: T) => void} done @param {(error: any) => void} [failed] */
  return (promise, done, failed = () => {}) => {
    const mine = ++turn;
    promise.then((found) => { if (mine === turn) done(found); }, (error) => { if (mine === turn) failed(error); });
  };
}

/** The state at the start. @param {Overview} overview @returns {State} */
export function firstState(overview) {
  const [layer, head] = overview.open;
  return {
    lang: overview.lang, theme: null, depth: overview.depth ?? "head", view: overview.compare ? "compare" : "map", layer, head, heads: [head], scale: overview.scale,
    merge: overview.merge ?? "tokens", query: null, key: null, pins: [], zoom: null, direction: "looks",
    lines: "vertical", threshold: null, show: "maps", sort: "layer", other: null, compareAs: "side", numbersStep: 0,
    written: null, temperature: 1,
  };
}

/** The values of each name of the state that is a word. */
export const VALUES = {
  lang: ["en", "zh"], theme: ["light", "dark"], depth: ["model", "head", "numbers"],
  view: ["map", "lines", "sentence", "generation", "compare"], merge: ["tokens", "characters", "words"],
  direction: ["looks", "seen"], lines: ["vertical", "horizontal"], sort: ["layer", "measure"],
  compareAs: ["side", "difference"], show: ["maps", "pattern", "entropy", "sink", "distance", "effect"],
};

/** The state as text for an address: what differs from the start, and layer and head. @param {State} state @param {State} start */
export function stateToText(state, start) {
  const { layer, head, heads, pins, query, key, zoom, other } = state, kept = new URLSearchParams({ layer: `${layer}`, head: `${head}` });
  for (const name of [...Object.keys(VALUES), "scale", "threshold", "written", "numbersStep", "temperature"]) {
    const value = /** @type {any} */ (state)[name];
    if (value !== null && value !== /** @type {any} */ (start)[name]) kept.set(name, String(value));
  }
  const more = {
    heads: heads.length > 1 && heads.join("."), pins: pins.map((pin) => pin.join("-")).join("."), at: query !== null && key !== null && `${query}-${key}`,
    zoom: zoom && [...zoom.rows, ...zoom.cols].map((one) => +one.toFixed(2)).join("_"), other: other && `${other.layer}-${other.head}`,
  };
  for (const [name, value] of Object.entries(more)) if (value) kept.set(name, value);
  return kept.toString();
}

/** What an address says about the state. Values that do not fit the trace are left out. @param {string} text @param {Overview} overview */
export function stateFromText(text, { records, scales, open }) {
  const asked = new URLSearchParams(text.replace(/^#/, "")), of = (/** @type {string} */ name) => asked.get(name) ?? "";
  /** @type {Partial<State> & Record<string, any>} */
  const found = {};
  for (const [name, choices] of Object.entries({ ...VALUES, scale: scales })) if (/** @type {string[]} */ (choices).includes(of(name))) found[name] = of(name);
  const layer = wholeNumber(of("layer"), records.length) ?? open[0], record = records[layer];
  if (!record) return found;
  const head = wholeNumber(of("head"), record.heads) ?? (layer === open[0] ? open[1] : 0), list = (/** @type {string} */ name) => of(name).split(".").filter(Boolean);
  const heads = list("heads").map((one) => wholeNumber(one, record.heads)).filter((one) => one !== null);
  Object.assign(found, { layer, head, heads: heads.length ? heads : [head], written: wholeNumber(of("written"), 2 ** 31), numbersStep: wholeNumber(of("numbersStep"), 1000) ?? 0, temperature: Number(of("temperature")) || 1 });
  const places = (/** @type {string} */ name) => list(name).map((pair) => /** @type {Place} */ (pair.split("-").map(Number)))
    .filter(([query, key]) => query >= 0 && query < record.T && key >= 0 && key < record.S);
  found.pins = places("pins");
  [found.query, found.key] = places("at")[0] ?? [null, null];
  const [top, bottom, left, right] = of("zoom").split("_").map(Number), threshold = Number(asked.get("threshold") ?? NaN);
  if (top < bottom && left < right && right < Infinity && bottom < Infinity) found.zoom = { rows: [top, bottom], cols: [left, right] };
  if (threshold >= 0 && threshold <= 1) found.threshold = threshold;
  const [otherLayer, otherHead] = of("other").split("-"), there = wholeNumber(otherLayer, records.length), one = wholeNumber(otherHead, records[there ?? 0].heads);
  if (there !== null && one !== null) found.other = { layer: there, head: one };
  return found;
}

/** A whole number below a limit, or null. @param {string | undefined} text @param {number} limit */
function wholeNumber(text, limit) {
  return text && /^\d{1,9}$/.test(text) && Number(text) < limit ? Number(text) : null;
}
