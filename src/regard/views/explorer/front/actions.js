// Changes of the state that several panels make.

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
