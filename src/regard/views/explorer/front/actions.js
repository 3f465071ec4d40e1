// Changes of the state that several panels make.

import { cellAt } from "./pooling.js";
import { zoomedBy } from "./zoom.js";

/** Open a head; what was selected stays selected where the map has it. @param {Explorer} explorer @param {number} layer @param {number} head */
export function openHead({ state, overview }, layer, head) {
  const record = overview.records[layer], now = state.get(), before = overview.records[now.layer], chosen = Math.min(head, record.heads - 1);
  const same = record.T === before.T && record.S === before.S;
  state.set({ layer, head: chosen, heads: [chosen], ...(same ? {} : { query: null, key: null, pins: [], zoom: null }) });
}

/** Pin the selected cell, or remove its pin: with a side, all pins of that word. @param {Explorer} explorer @param {Side} [side] */
export function togglePin({ state }, side) {
  const { query, key, pins } = state.get();
  if (query === null || key === null) return;
  const rest = pins.filter(([q, k]) => (side !== "key" && q !== query) || (side !== "query" && k !== key));
  state.set({ pins: rest.length < pins.length ? rest : [...pins, [query, key]] });
}

/** Zoom the map around the selected cell. @param {Explorer} explorer @param {number} factor */
export function zoomMap(explorer, factor) {
  const { query: rows, key: cols } = explorer.axes(), { zoom, query, key } = explorer.state.get();
  const centre = query === null || key === null ? undefined : /** @type {Span} */ ([rows.unitOf(query) + 0.5, cols.unitOf(key) + 0.5]);
  explorer.state.set({ zoom: zoomedBy(zoom, rows.count, cols.count, factor, centre) });
}

/** A query, or else the last one, which sees the most keys, or of cross-attention the first; and the key of its largest weight. @param {Attention} record @param {Cells} cells @param {number | null} query @returns {Place | null} */
export function firstSelection({ kind }, { R, C, values, rowStarts, colStarts }, query) {
  const row = query !== null ? cellAt(rowStarts, query) : kind === "cross" ? 0 : R - 1, line = values.subarray(row * C, (row + 1) * C);
  return R && C ? [rowStarts[row], colStarts[Math.max(0, line.indexOf(Math.max(...line.filter((one) => one === one))))]] : null;
}
