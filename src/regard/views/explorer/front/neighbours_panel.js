// Who the selected word looks at, who looks at it, and the pinned cells.

import { fillBars } from "./bars.js";
import { create, fill, isolated } from "./dom.js";
import { cellName, startsOn } from "./labels.js";
import { cellAt, counted } from "./pooling.js";
import { weightText } from "./scale.js";

const MOST = 8;

/** @param {Explorer} explorer @returns {Panel & {refine(detail: {cells: Cells, axes: Axes} | null): void}}  `refine`: smaller cells of a part of the map */
export function neighboursPanel(explorer) {
  const { state, say } = explorer, readout = create("dl.readout"), pinned = create("ol.pins");
  const lists = { key: create("ol.bar-list"), query: create("ol.bar-list") };
  const titles = { key: create("h3"), query: create("h3") };
  const pins = create("div.pinned", create("h3#pins"), pinned);
  const element = create("div.neighbours-panel", create("h3#selected"), readout,
    titles.key, lists.key, titles.query, lists.query, pins);
  /** @type {Cells | null} */
  let shown = null;
  /** @type {{cells: Cells, axes: Axes} | null} */
  let detail = null;

  const draw = () => {
    const { query, key, pins: all, view } = state.get();
    element.hidden = !shown;
    if (!shown || query === null || key === null) return;
    const part = view === "map" && detail && holds(detail.cells, query, key) ? detail : null, { cells, axes } = part ?? { cells: shown, axes: explorer.axes() };
    const { values, C, R, attending } = cells, row = cellAt(cells.rowStarts, query), col = cellAt(cells.colStarts, key), value = values[row * C + col];
    const weight = attending[row] === 0 ? say("sees-nothing") : value === 0 ? say("masked") : `${say("weight")} ${weightText(value)}`;
    fill(readout, create("dt", say("query")), create("dd", isolated(cellName(axes, cells, "query", row))),
      create("dt", say("key")), create("dd", isolated(cellName(axes, cells, "key", col))), create("dd.weight", weight));
    /** @param {Side} side @param {number} count @param {(i: number) => number} weightOf */
    const listed = (side, count, weightOf) => {
      const best = largest(count, weightOf), list = lists[side];
      fillBars(list, best.map((i) => ({ label: cellName(axes, cells, side, i), share: weightOf(i), text: weightText(weightOf(i)),
        go: () => state.set({ [side]: startsOn(cells, side)[i] }) })));
      if (!best.length) list.append(create("li.quiet", say("none")));
    };
    listed("key", C, (c) => values[row * C + c]);
    listed("query", R, (r) => values[r * C + col]);
    const where = part ? say("in-part") : "", size = (/** @type {ArrayLike<number>} */ starts, /** @type {number} */ i) => starts[i + 1] - starts[i];
    titles.key.textContent = say(size(cells.rowStarts, row) > 1 ? "looks-several" : "looks") + where;
    titles.query.textContent = say(size(cells.colStarts, col) > 1 ? "seen-several" : "seen") + where;
    pins.hidden = !all.length;
    fill(pinned, ...all.map(([q, k], number) => {
      const { cells, axes } = part && holds(part.cells, q, k) ? part : { cells: /** @type {Cells} */ (shown), axes: explorer.axes() };
      const { values, C } = cells, r = cellAt(cells.rowStarts, q), c = cellAt(cells.colStarts, k), text = `${cellName(axes, cells, "query", r)} → ${cellName(axes, cells, "key", c)}`;
      const remove = () => state.set({ pins: state.get().pins.filter((_, i) => i !== number) });
      return create("li", create("button.bar-row", { onclick: () => state.set({ query: q, key: k }) },
        create("b.badge", String(number + 1)), isolated(text), create("span", weightText(values[r * C + c]))),
      create("button.plain", { "aria-label": say("pin-remove", { cell: text }), onclick: remove }, "✕"));
    }));
  };
  return {
    element,
    show(found) { shown = found; draw(); },
    refine(found) { detail = found; draw(); },
    update(_, has) { if (has("query", "key", "pins", "lang", "view")) draw(); },
  };
}

/** Whether cells have a query and a key. @param {Cells} cells @param {number} query @param {number} key */
export const holds = ({ rowStarts, colStarts, R, C }, query, key) => query >= rowStarts[0] && query < rowStarts[R] && key >= colStarts[0] && key < colStarts[C];

/** The indices of the largest positive values, largest first. @param {number} count @param {(i: number) => number} value */
const largest = (count, value) => counted(count).filter((i) => value(i) > 0).sort((a, b) => value(b) - value(a)).slice(0, MOST);
