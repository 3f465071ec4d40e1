// Changes of the state that several panels make.

import { zoomedBy } from "./zoom.js";

/** Open a head; what was selected stays selected where the map has it. @param {Explorer} explorer @param {number} layer @param {number} head */
export function openHead({ state, overview }, layer, head) {
  const record = overview.records[layer], now = state.get(), before = overview.records[now.layer], chosen = Math.min(head, record.heads - 1);
  const same = record.T === before.T && record.S === before.S;
  state.set({ layer, head: chosen, heads: [chosen], ...(same ? {} : { query: null, key: null, pins: [], zoom: null }) });
}

/** Pin the selected cell, or remove its pin. @param {Explorer} explorer */
export function togglePin({ state }) {
  const { query, key, pins } = state.get();
  if (query === null || key === null) return;
  const rest = pins.filter(([q, k]) => q !== query || k !== key);
  state.set({ pins: rest.length < pins.length ? rest : [...pins, [query, key]] });
}

/** Zoom the map around the selected cell. @param {Explorer} explorer @param {number} factor */
export function zoomMap(explorer, factor) {
  const { query: rows, key: cols } = explorer.axes(), { zoom, query, key } = explorer.state.get();
  const centre = query === null || key === null ? undefined : /** @type {Span} */ ([rows.unitOf(query) + 0.5, cols.unitOf(key) + 0.5]);
  explorer.state.set({ zoom: zoomedBy(zoom, rows.count, cols.count, factor, centre) });
}

/** The last query, which sees the most keys, and the key of its largest weight. @param {Cells} cells @returns {Place | null} */
export function firstSelection({ R, C, values, rowStarts, colStarts }) {
  if (!R || !C) return null;
  let best = 0;
  for (let c = 1; c < C; c++) if (values[(R - 1) * C + c] > values[(R - 1) * C + best]) best = c;
  return [rowStarts[R - 1], colStarts[best]];
}
