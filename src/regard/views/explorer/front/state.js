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
    lang: overview.lang, theme: null, depth: overview.depth ?? "head", view: "map", layer, head, heads: [head], scale: overview.scale,
    merge: overview.merge ?? "tokens", query: null, key: null, pins: [], zoom: null, direction: "looks",
    lines: "vertical", threshold: null, show: "maps", sort: "layer", other: null, compareAs: "side", numbersStep: 0,
    written: null,
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
  const kept = new URLSearchParams({ layer: String(state.layer), head: String(state.head) });
  for (const name of [...Object.keys(VALUES), "scale", "threshold", "written", "numbersStep"]) {
    const value = /** @type {any} */ (state)[name];
    if (value !== null && value !== /** @type {any} */ (start)[name]) kept.set(name, String(value));
  }
  if (state.heads.length > 1) kept.set("heads", state.heads.join("."));
  if (state.pins.length) kept.set("pins", state.pins.map((pin) => pin.join("-")).join("."));
  if (state.query !== null && state.key !== null) kept.set("at", `${state.query}-${state.key}`);
  if (state.zoom) kept.set("zoom", [...state.zoom.rows, ...state.zoom.cols].map((one) => +one.toFixed(2)).join("_"));
  if (state.other) kept.set("other", `${state.other.layer}-${state.other.head}`);
  return kept.toString();
}

/** What an address says about the state. Values that do not fit the trace are left out. @param {string} text @param {Overview} overview */
export function stateFromText(text, overview) {
  const asked = new URLSearchParams(text.replace(/^#/, ""));
  /** @type {Partial<State> & Record<string, any>} */
  const found = {};
  for (const [name, choices] of Object.entries(VALUES)) {
    const value = asked.get(name);
    if (value !== null && choices.includes(value)) found[name] = value;
  }
  const scale = asked.get("scale"), layer = wholeNumber(asked.get("layer"), overview.records.length) ?? overview.open[0];
  if (scale !== null && overview.scales.includes(/** @type {ScaleName} */ (scale))) found.scale = /** @type {ScaleName} */ (scale);
  const record = overview.records[layer];
  if (!record) return found;
  const head = wholeNumber(asked.get("head"), record.heads) ?? (layer === overview.open[0] ? overview.open[1] : 0);
  [found.layer, found.head, found.heads] = [layer, head, [head]];
  const inside = (/** @type {string} */ pair) => {
    const [query, key] = pair.split("-").map(Number);
    return query >= 0 && query < record.T && key >= 0 && key < record.S ? /** @type {Place} */ ([query, key]) : null;
  };
  const places = (/** @type {string} */ name) => (asked.get(name) ?? "").split(".").filter(Boolean).map(inside).filter((one) => one !== null);
  const heads = (asked.get("heads") ?? "").split(".").map((one) => wholeNumber(one, record.heads)).filter((one) => one !== null);
  if (heads.length) found.heads = heads;
  found.pins = places("pins");
  [found.query, found.key] = places("at")[0] ?? [null, null];
  const zoom = (asked.get("zoom") ?? "").split("_").map(Number);
  if (zoom.length === 4 && zoom.every(Number.isFinite) && zoom[0] < zoom[1] && zoom[2] < zoom[3]) {
    found.zoom = { rows: [zoom[0], zoom[1]], cols: [zoom[2], zoom[3]] };
  }
  const threshold = Number(asked.get("threshold") ?? NaN);
  if (threshold >= 0 && threshold <= 1) found.threshold = threshold;
  found.written = wholeNumber(asked.get("written"), 2 ** 31);
  found.numbersStep = wholeNumber(asked.get("numbersStep"), 1000) ?? 0;
  const [otherLayer, otherHead] = (asked.get("other") ?? "").split("-");
  const there = wholeNumber(otherLayer, overview.records.length), one = wholeNumber(otherHead, overview.records[there ?? 0].heads);
  if (there !== null && one !== null) found.other = { layer: there, head: one };
  return found;
}

/** A whole number below a limit, or null. @param {string | null | undefined} text @param {number} limit */
function wholeNumber(text, limit) {
  return text && /^\d{1,9}$/.test(text) && Number(text) < limit ? Number(text) : null;
}
