// The text itself, its words shaded by weight: what the selected word looks at, or who looks at it.

import { arrowsOf, clamp, create, fill, segments } from "./dom.js";
import { digits, drawFlow, flowOf, NARROW, tableOf, WIDE } from "./figures.js";
import { cellLabel, cellName, directionOf, startsOn } from "./labels.js";
import { drawLegend, legend, scaleNote } from "./legend.js";
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
      fill(words, ...labels.map((label, i) => create("span", { role: "option", dir: "auto", "data-at": first + i, onclick: () => choose(side, first + i) }, label)));
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
        word.ariaSelected = String(i === chosen);
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
    figure(ruler) {
      const shown = drawn;
      if (!shown || stale) return null;
      const parts = SIDES.filter((side) => texts[side].words.children.length).map((side) => ({ title: single() ? "" : say(side === "query" ? "queries" : "keys"), words: wordsOf(texts[side].words) }));
      const all = parts.flatMap(({ words }) => words), width = flowOf(ruler, all, NARROW).height > 5 * 26 ? WIDE : NARROW;
      let bottom = 20;
      const flows = parts.map(({ title, words }) => {
        const top = bottom + (title ? 20 : 0), flow = flowOf(ruler, words, width);
        bottom = top + flow.height + 8;
        return { title, top, flow };
      });
      return {
        width, height: bottom + 44, notes: [note.textContent, scaleNote(explorer, shown.scale)],
        draw(pen) {
          const ink = explorer.colour("ink");
          pen.text(about.textContent, 0, 8, { size: 13, weight: 600, fill: ink, most: width });
          for (const { title, top, flow } of flows) {
            if (title) pen.text(title, 0, top - 9, { size: 11, fill: explorer.colour("quiet") });
            drawFlow(explorer, pen, flow, 0, top);
          }
          drawLegend(explorer, pen, shown.scale, 0, bottom + 4);
        },
      };
    },
    table() {
      const { query: q, key: k, direction: now } = state.get();
      if (!drawn || stale || q === null || k === null) return null;
      const { values, C, rowStarts, colStarts } = drawn.cells, side = now === "looks" ? "key" : "query", row = cellAt(rowStarts, q), col = cellAt(colStarts, k);
      const starts = startsOn(drawn.cells, side), weights = times(starts.length - 1, (i) => values[side === "key" ? row * C + i : i * C + col]);
      const rows = weights.map((weight, i) => [starts[i], cellLabel(explorer.axes(), /** @type {{cells: Cells}} */ (drawn).cells, side, i), digits(weight)]);
      return tableOf(explorer, ["position", side, "weight"], rows, { title: about.textContent });
    },
  };
}

/** The words as they are shaded. @param {HTMLElement} list */
const wordsOf = (list) => Array.from(list.children, (node) => {
  const word = /** @type {HTMLElement} */ (node), { background, color } = word.style;
  return { text: word.textContent, fill: background, colour: color, edge: word.getAttribute("aria-selected") === "true" ? "mark" : undefined };
});
