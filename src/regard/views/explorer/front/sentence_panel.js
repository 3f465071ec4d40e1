// The text itself, its words shaded by weight: what the selected word looks at, or who looks at it.

import { selectCell } from "./actions.js";
import { create, segments } from "./dom.js";
import { cellLabel, cellName } from "./labels.js";
import { legend } from "./legend.js";
import { measuringPen } from "./pen.js";
import { cellAt } from "./pooling.js";
import { colourOf, css, inkOn, weightText } from "./scale.js";

const MOST_SHADED = 1200;

/** @param {Explorer} explorer @returns {Panel} */
export function sentencePanel(explorer) {
  const { state } = explorer, keys = legend(explorer);
  const direction = segments("direction", [["looks", "direction-looks"], ["seen", "direction-seen"]], (value) => state.set({ direction: /** @type {State["direction"]} */ (value) }));
  const about = create("p", { class: "about" }), note = create("p", { class: "quiet" });
  const query = textOf("query", "queries"), key = textOf("key", "keys");
  const element = create("div", { class: "sentence-panel" }, direction.element, about, query.element, key.element, note, keys.element);
  /** @type {Cells | null} */
  let cells = null;
  /** @type {Scale | null} */
  let scale = null;
  let asked = 0;

  /** One text: a list box whose options are words. @param {"query" | "key"} side @param {string} name */
  function textOf(side, name) {
    const words = create("p", { class: "words", role: "listbox", tabindex: 0, "data-label": name, onkeydown: move, dir: "auto" });
    /** @param {KeyboardEvent} event */
    function move(event) {
      const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -(2 ** 30), End: 2 ** 30 }[event.key];
      if (!by || !cells || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      pick(Math.max(0, Math.min(count() - 1, selected() + by)));
    }
    const starts = () => { const { rowStarts, colStarts } = /** @type {Cells} */ (cells); return side === "query" ? rowStarts : colStarts; };
    const count = () => starts().length - 1;
    const selected = () => cellAt(starts(), state.get()[side] ?? 0);
    const pick = (/** @type {number} */ index) => choose(side, starts()[index]);
    return { element: create("div", { class: "text" }, create("h3", { "data-text": name }), words), words, pick, selected, count };
  }
  /** In one text of self-attention a word is both query and key. @param {"query" | "key"} side @param {number} position */
  const choose = (side, position) => {
    const { query: q, key: k, direction: now } = state.get();
    if (single()) selectCell(explorer, ...(now === "looks" ? /** @type {Place} */ ([position, k ?? position]) : /** @type {Place} */ ([q ?? position, position])));
    else selectCell(explorer, side === "query" ? position : q ?? 0, side === "key" ? position : k ?? 0);
    if (!single()) state.set({ direction: side === "query" ? "looks" : "seen" });
  };
  const single = () => { const { kind, T, S, part } = explorer.record(); return kind !== "cross" && T === S && part?.top === part?.left; };
  const visible = () => state.get().view === "sentence" && state.get().depth === "head";

  const load = async () => {
    const { layer, head } = state.get(), turn = ++asked;
    const found = await explorer.shownCells(layer, head).catch(() => null);
    if (turn !== asked) return;
    [cells, scale] = [found, found && explorer.scaleOf(found)];
    if (scale) keys.update(scale);
    build();
    shade();
  };
  /** The words; again only for another text. */
  const build = () => {
    query.element.hidden = single();
    for (const side of /** @type {const} */ (["query", "key"])) {
      const text = side === "query" ? query : key, own = cells;
      if (!own || text.element.hidden) { text.words.replaceChildren(); continue; }
      const first = Math.max(0, Math.min(text.count() - MOST_SHADED, text.selected() - MOST_SHADED / 2)), stop = Math.min(text.count(), first + MOST_SHADED);
      text.words.replaceChildren(...Array.from({ length: stop - first }, (_, i) => {
        const word = create("span", { role: "option", dir: "auto", id: null, "data-at": first + i }, cellLabel(explorer, own, side, first + i));
        word.addEventListener("click", () => text.pick(first + i));
        return word;
      }));
    }
    const longest = cells ? Math.max(cells.R, cells.C) : 0;
    note.textContent = longest > MOST_SHADED ? explorer.say("words-part", { shown: MOST_SHADED, count: longest }) : "";
  };
  const shade = () => {
    const { query: q, key: k, direction: now } = state.get();
    if (!cells || !scale || q === null || k === null) return;
    const row = cellAt(cells.rowStarts, q), col = cellAt(cells.colStarts, k), looks = now === "looks", own = cells;
    const shaded = single() ? key : looks ? key : query, value = (/** @type {number} */ i) => (looks ? own.values[row * own.C + i] : own.values[i * own.C + col]);
    const chosen = looks ? row : col;
    for (const text of [query, key]) {
      for (const node of text.words.children) {
        const word = /** @type {HTMLElement} */ (node), i = Number(word.dataset.at), weight = text === shaded ? value(i) : 0;
        const colour = colourOf(explorer.overview, scale, weight), selected = (text === shaded ? single() : true) && i === (single() ? chosen : text === query ? row : col);
        word.style.background = colour ? css(colour) : "";
        word.style.color = colour ? inkOn(colour) : "";
        word.title = colour ? weightText(weight) : "";
        word.setAttribute("aria-selected", String(selected));
      }
    }
    const name = looks ? cellName(explorer, cells, "query", row) : cellName(explorer, cells, "key", col);
    about.textContent = explorer.say(looks ? "sentence-looks" : "sentence-seen", { word: name });
  };
  return {
    element,
    update(now, changed) {
      const has = (/** @type {string[]} */ ...names) => names.some((name) => changed.has(name));
      direction.select(now.direction);
      if (has("layer", "head", "scale", "merge", "lang")) asked = -1;
      if (!visible()) return;
      if (asked === -1 || !cells) { asked = 0; load(); } else if (has("query", "key", "direction", "view", "depth")) shade();
    },
    size: () => [680, wordBoxes(explorer, element).height + 20],
    draw(pen) {
      const { boxes } = wordBoxes(explorer, element), ink = explorer.colour("--ink");
      for (const { text, x, y, width, fill, colour } of boxes) {
        if (fill) pen.rect(x, y, width, 22, fill);
        pen.text(text, x + width / 2, y + 11, { size: 14, fill: fill ? colour : ink, align: "center" });
      }
    },
  };
}

/** The shaded words as boxes in lines of 660 pixels. @param {Explorer} explorer @param {HTMLElement} element */
function wordBoxes(explorer, element) {
  const pen = measuringPen(getComputedStyle(explorer.root).fontFamily), boxes = [];
  let x = 10, y = 10;
  for (const text of element.querySelectorAll(".words")) {
    for (const node of text.children) {
      const word = /** @type {HTMLElement} */ (node), label = word.textContent ?? "", width = pen.width(label, 14) + 8;
      if (x + width > 670) [x, y] = [10, y + 26];
      boxes.push({ text: label, x, y, width, fill: word.style.background, colour: word.style.color });
      x += width + 3;
    }
    if (text.children.length) [x, y] = [10, y + 38];
  }
  return { boxes, height: y };
}
