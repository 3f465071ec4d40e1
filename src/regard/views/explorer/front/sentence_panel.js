// The text itself, its words shaded by weight: what the selected word looks at, or who looks at it.

import { arrowsOf, clamp, create, segments } from "./dom.js";
import { cellLabel, cellName, directionOf, startsOn } from "./labels.js";
import { legend } from "./legend.js";
import { cellAt, times } from "./pooling.js";
import { colourOf, css, inkOn, weightText } from "./scale.js";
import { VALUES } from "./state.js";

const MOST_SHADED = 1200, SIDES = /** @type {const} */ (["query", "key"]);

/** @param {Explorer} explorer @returns {Panel} */
export function sentencePanel(explorer) {
  const { state, say } = explorer, keys = legend(explorer), direction = segments(explorer, "direction", VALUES.direction);
  const about = create("p.about"), note = create("p.quiet");
  const texts = { query: textOf("query", "queries"), key: textOf("key", "keys") };
  const element = create("div.sentence-panel", direction.element, about, texts.query.element, texts.key.element, note, keys.element);
  /** @type {{cells: Cells, scale: Scale} | null} */
  let drawn = null;
  let stale = true;

  /** One text: a list box whose options are words. @param {Side} side @param {string} name */
  function textOf(side, name) {
    const words = create("p.words", { role: "listbox", tabindex: 0, "data-label": name, onkeydown: move });
    /** @param {KeyboardEvent} event */
    function move(event) {
      const by = arrowsOf(event);
      if (by && drawn) choose(side, clamp(selected() + by[0] + by[1], 0, starts().length - 2));
    }
    const starts = () => startsOn(/** @type {{cells: Cells}} */ (drawn).cells, side), selected = () => cellAt(starts(), state.get()[side] ?? 0);
    return { element: create("div.text", create("h3", { "data-text": name }), words), words, starts, selected };
  }
  /** Select a word. In one text of self-attention it is both query and key. @param {Side} side @param {number} index */
  const choose = (side, index) => {
    const position = texts[side].starts()[index], { query, key, direction: now } = state.get();
    if (single()) state.set(now === "looks" ? { query: position, key: key ?? position } : { query: query ?? position, key: position });
    else state.set({ query: query ?? 0, key: key ?? 0, [side]: position, direction: side === "query" ? "looks" : "seen" });
  };
  const single = () => { const { kind, T, S, part } = explorer.record(); return kind !== "cross" && T === S && part?.top === part?.left; };
  const visible = () => state.get().view === "sentence" && state.get().depth === "head";

  /** The words; again only for another text. @param {Cells} cells */
  const build = (cells) => {
    texts.query.element.hidden = single();
    for (const side of SIDES) {
      const { words, element: text, selected, starts } = texts[side], count = starts().length - 1;
      const first = Math.max(0, Math.min(count - MOST_SHADED, selected() - MOST_SHADED / 2)), shown = text.hidden ? 0 : Math.min(count - first, MOST_SHADED);
      const labels = times(shown, (i) => cellLabel(explorer.axes(), cells, side, first + i));
      words.dir = directionOf(labels);
      words.replaceChildren(...labels.map((label, i) => create("span", { role: "option", dir: "auto", "data-at": first + i, onclick: () => choose(side, first + i) }, label)));
    }
    const longest = Math.max(cells.R, cells.C);
    note.textContent = longest > MOST_SHADED ? say("words-part", { shown: MOST_SHADED, count: longest }) : "";
  };
  const shade = () => {
    const { query: q, key: k, direction: now } = state.get();
    if (!drawn || q === null || k === null) return;
    const { cells, scale } = drawn, { values, C } = cells, row = cellAt(cells.rowStarts, q), col = cellAt(cells.colStarts, k), looks = now === "looks";
    const shaded = single() || looks ? "key" : "query", value = (/** @type {number} */ i) => (looks ? values[row * C + i] : values[i * C + col]);
    for (const side of SIDES) {
      const chosen = single() ? (looks ? row : col) : side === "query" ? row : col;
      for (const node of texts[side].words.children) {
        const word = /** @type {HTMLElement} */ (node), i = Number(word.dataset.at), weight = side === shaded ? value(i) : 0, colour = colourOf(explorer.overview, scale, weight);
        word.style.background = colour ? css(colour) : "";
        word.style.color = colour ? inkOn(colour) : "";
        word.title = colour ? weightText(weight) : "";
        word.setAttribute("aria-selected", String(i === chosen));
      }
    }
    about.textContent = say(looks ? "sentence-looks" : "sentence-seen", { word: cellName(explorer.axes(), cells, looks ? "query" : "key", looks ? row : col) });
  };
  const redraw = () => {
    if (!visible() || !drawn) return;
    if (stale) { keys.update(drawn.scale); build(drawn.cells); }
    stale = false;
    shade();
  };
  return {
    element,
    show(cells) {
      [drawn, stale] = [cells && { cells, scale: explorer.scaleOf(cells) }, true];
      redraw();
    },
    update(now, has) {
      direction.select(now.direction);
      stale ||= has("lang");
      if (stale || has("query", "key", "direction", "view", "depth")) redraw();
    },
    size: () => [680, wordBoxes(explorer, element).height + 20],
    draw(pen) {
      const ink = explorer.colour("--ink");
      for (const { text, x, y, width, fill, colour } of wordBoxes(explorer, element).boxes) {
        if (fill) pen.rect(x, y, width, 22, fill);
        pen.text(text, x + width / 2, y + 11, { size: 14, fill: fill ? colour : ink, align: "center" });
      }
    },
  };
}

/** The shaded words as boxes in lines of 660 pixels. @param {Explorer} explorer @param {HTMLElement} element */
function wordBoxes({ ruler }, element) {
  const boxes = [];
  let x = 10, y = 10;
  for (const text of element.querySelectorAll(".words")) {
    for (const node of text.children) {
      const word = /** @type {HTMLElement} */ (node), label = word.textContent ?? "", width = ruler.width(label, 14) + 8;
      if (x + width > 670) [x, y] = [10, y + 26];
      boxes.push({ text: label, x, y, width, fill: word.style.background, colour: word.style.color });
      x += width + 3;
    }
    if (text.children.length) [x, y] = [10, y + 38];
  }
  return { boxes, height: y };
}
