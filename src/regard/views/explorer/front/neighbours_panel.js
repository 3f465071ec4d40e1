// Who the selected word looks at, who looks at it, and the pinned cells.

import { selectCell } from "./actions.js";
import { create, isolated } from "./dom.js";
import { cellName } from "./labels.js";
import { cellAt } from "./pooling.js";
import { weightText } from "./scale.js";

const MOST = 8;

/** @param {Explorer} explorer @returns {Panel} */
export function neighboursPanel(explorer) {
  const { state } = explorer, readout = create("dl", { class: "readout" }), pinned = create("ol", { class: "pins" });
  const looks = create("ol", { class: "bars" }), seen = create("ol", { class: "bars" });
  const pins = create("div", { class: "pinned" }, create("h3", { "data-text": "pins" }), pinned);
  const element = create("div", { class: "neighbours-panel" }, create("h3", { "data-text": "selected" }), readout,
    create("h3", { "data-text": "looks" }), looks, create("h3", { "data-text": "seen" }), seen, pins);
  /** @type {Cells | null} */
  let cells = null;
  let asked = 0;

  const load = async () => {
    const { layer, head } = state.get(), turn = ++asked;
    const found = await explorer.shownCells(layer, head).catch(() => null);
    if (turn !== asked) return;
    cells = found;
    draw();
  };
  const draw = () => {
    const { query, key } = state.get();
    element.hidden = !cells;
    if (!cells || query === null || key === null) return;
    const row = cellAt(cells.rowStarts, query), col = cellAt(cells.colStarts, key);
    drawReadout(row, col);
    drawBars(looks, "key", cells.C, (c) => /** @type {Cells} */ (cells).values[row * /** @type {Cells} */ (cells).C + c], (c) => [row, c]);
    drawBars(seen, "query", cells.R, (r) => /** @type {Cells} */ (cells).values[r * /** @type {Cells} */ (cells).C + col], (r) => [r, col]);
    drawPins();
  };
  /** @param {"query" | "key"} side @param {number} index */
  const nameOf = (side, index) => cellName(explorer, /** @type {Cells} */ (cells), side, index);
  /** @param {number} row @param {number} col */
  const drawReadout = (row, col) => {
    const { values, C, attending } = /** @type {Cells} */ (cells), value = values[row * C + col], { say } = explorer;
    const weight = attending[row] === 0 ? say("sees-nothing") : value === 0 ? say("masked") : `${say("weight")} ${weightText(value)}`;
    readout.replaceChildren(...[["query", nameOf("query", row)], ["key", nameOf("key", col)]].flatMap(([side, name]) => [create("dt", {}, say(side)), create("dd", {}, isolated(name))]),
      create("dd", { class: "weight" }, weight));
  };
  /** @param {HTMLElement} list @param {"query" | "key"} side @param {number} count @param {(i: number) => number} weight @param {(i: number) => Span} cell */
  const drawBars = (list, side, count, weight, cell) => {
    const best = largest(count, weight);
    list.replaceChildren(...best.map((i) => {
      const bar = create("i"), value = weight(i);
      bar.style.width = `${100 * Math.min(1, value)}%`;
      const go = () => { const { rowStarts, colStarts } = /** @type {Cells} */ (cells), [r, c] = cell(i); selectCell(explorer, rowStarts[r], colStarts[c]); };
      return create("li", {}, create("button", { type: "button", onclick: go }, bar, isolated(nameOf(side, i)), create("span", {}, weightText(value))));
    }));
    if (!best.length) list.append(create("li", { class: "quiet" }, explorer.say("nobody")));
  };
  const drawPins = () => {
    const { pins: all } = state.get(), { values, C, rowStarts, colStarts } = /** @type {Cells} */ (cells);
    pins.hidden = !all.length;
    pinned.replaceChildren(...all.map(([query, key], number) => {
      const row = cellAt(rowStarts, query), col = cellAt(colStarts, key), text = `${nameOf("query", row)} → ${nameOf("key", col)}`;
      const remove = () => state.set({ pins: state.get().pins.filter(([q, k]) => q !== query || k !== key) });
      return create("li", {}, create("button", { type: "button", class: "pin", onclick: () => selectCell(explorer, query, key) },
        create("b", { class: "badge" }, String(number + 1)), isolated(text), create("span", {}, weightText(values[row * C + col]))),
      create("button", { type: "button", class: "plain", "aria-label": explorer.say("pin-remove", { cell: text }), onclick: remove }, "✕"));
    }));
  };
  return {
    element,
    update(_, changed) {
      const has = (/** @type {string[]} */ ...names) => names.some((name) => changed.has(name));
      if (has("layer", "head", "scale", "merge")) load();
      else if (has("query", "key", "pins", "lang")) draw();
    },
  };
}

/** The indices of the largest positive values, largest first. @param {number} count @param {(i: number) => number} value */
function largest(count, value) {
  /** @type {number[]} */
  const found = [];
  for (let i = 0; i < count; i++) {
    if (!(value(i) > 0) || (found.length === MOST && value(i) <= value(found[MOST - 1]))) continue;
    let at = found.length;
    while (at > 0 && value(found[at - 1]) < value(i)) at--;
    found.splice(at, 0, i);
    if (found.length > MOST) found.pop();
  }
  return found;
}
