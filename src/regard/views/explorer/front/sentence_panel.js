// The text itself, its words shaded by weight: what the selected word looks at, or who looks at it. Of several heads each
// draws a stripe under every word, so that no colours mix.

import { arrowsOf, clamp, create, fill, segments } from "./dom.js";
import { digits, drawFlow, drawSamples, flowOf, NARROW, STRIPE, tableOf, WIDE } from "./figures.js";
import { colourOfHead, headChips, headSamples, openHeads } from "./heads.js";
import { cellLabel, cellName, directionOf, startsOn } from "./labels.js";
import { drawLegend, legend, scaleNote } from "./legend.js";
import { cellAt, times } from "./pooling.js";
import { colourOf, css, inkOn, weightText } from "./scale.js";
import { newest, VALUES } from "./state.js";

const MOST_SHADED = 1200, SIDES = /** @type {const} */ (["query", "key"]);

/** @param {Explorer} explorer @returns {Panel} */
export function sentencePanel(explorer) {
  const { state, say } = explorer, keys = legend(explorer), direction = segments(explorer, "direction", VALUES.direction), chips = headChips(explorer), latest = newest();
  const about = create("p.about"), note = create("p.quiet");
  const texts = { query: textOf("query", "queries"), key: textOf("key", "keys") };
  const element = create("div.sentence-panel", direction.element, chips.element, about, texts.query.element, texts.key.element, note, keys.element);
  /** @type {OpenHead[]} */
  let drawn = [];
  /** What of each head is drawn under the words. @type {Map<Element, {colour: string, level: number}[]>} */
  const stripes = new Map();
  let stale = true;

  /** One text: a list box whose options are words. @param {Side} side @param {string} name */
  function textOf(side, name) {
    const words = create("p.words", { role: "listbox", tabindex: 0, "data-label": name, onkeydown: move });
    /** @param {KeyboardEvent} event */
    function move(event) {
      const by = arrowsOf(event);
      if (by && drawn.length) choose(side, clamp(selected() + by[0] + by[1], 0, starts().length - 2));
    }
    const starts = () => startsOn(drawn[0].cells, side), selected = () => cellAt(starts(), state.get()[side] ?? 0);
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
    stripes.clear();
    keys.element.hidden = drawn.length > 1;
    texts.query.element.hidden = single();
    for (const side of SIDES) {
      const { words, element: text, selected, starts } = texts[side], count = starts().length - 1;
      const first = Math.max(0, Math.min(count - MOST_SHADED, selected() - MOST_SHADED / 2)), shown = text.hidden ? 0 : Math.min(count - first, MOST_SHADED);
      const labels = times(shown, (i) => cellLabel(explorer.axes(), cells, side, first + i));
      words.dir = directionOf(labels);
      fill(words, ...labels.map((label, i) => create("span", { role: "option", dir: "auto", "data-at": first + i, onclick: () => choose(side, first + i) }, label)));
    }
    const longest = Math.max(cells.R, cells.C);
    note.textContent = [longest > MOST_SHADED && say("words-part", { shown: MOST_SHADED, count: longest }), drawn.length > 1 && say("words-stripes")].filter(Boolean).join(" ");
  };
  const shade = () => {
    const { query: q, key: k, direction: now } = state.get();
    if (!drawn.length || q === null || k === null) return;
    const [{ cells, scale }] = drawn, several = drawn.length > 1, { C } = cells, row = cellAt(cells.rowStarts, q), col = cellAt(cells.colStarts, k), looks = now === "looks";
    const shaded = single() || looks ? "key" : "query", place = (/** @type {number} */ i) => (looks ? row * C + i : i * C + col);
    for (const side of SIDES) {
      const chosen = single() ? (looks ? row : col) : side === "query" ? row : col;
      for (const node of texts[side].words.children) {
        const word = /** @type {HTMLElement} */ (node), i = Number(word.dataset.at), weights = drawn.map((one) => (side === shaded ? one.cells.values[place(i)] : 0));
        const colour = several ? null : colourOf(explorer.overview, scale, weights[0]), own = drawn.map((one, h) => ({ colour: colourOfHead(one.head), level: weights[h] > 0 ? one.scale.level(weights[h]) : 0 }));
        if (several) stripes.set(word, own);
        word.style.background = several ? own.map(stripeStyle).join() : colour ? css(colour) : "";
        word.style.paddingBottom = several ? `${STRIPE * drawn.length + 2}px` : "";
        word.style.color = colour ? inkOn(colour) : "";
        word.title = several ? weights.map((weight, h) => `${say("head")} ${drawn[h].head}: ${weightText(weight)}`).join("\n") : colour ? weightText(weights[0]) : "";
        word.ariaSelected = String(i === chosen);
      }
    }
    about.textContent = say(looks ? "sentence-looks" : "sentence-seen", { word: cellName(explorer.axes(), cells, looks ? "query" : "key", looks ? row : col) });
  };
  const redraw = () => {
    if (!visible() || !drawn.length) return;
    if (stale) { keys.update(drawn[0].scale); build(drawn[0].cells); }
    stale = false;
    shade();
  };
  return {
    element,
    update(now, has) {
      direction.select(now.direction);
      chips.update(has);
      if (has("layer", "head", "heads", "scale", "merge")) drawn = [];
      if (!drawn.length && visible()) latest(openHeads(explorer), (found) => { [drawn, stale] = [found, true]; redraw(); });
      stale ||= has("lang");
      if (stale || has("query", "key", "direction", "view", "depth")) redraw();
    },
    figure(ruler) {
      const shown = drawn;
      if (!shown.length || stale) return null;
      const parts = SIDES.filter((side) => texts[side].words.children.length).map((side) => ({ title: single() ? "" : say(side === "query" ? "queries" : "keys"), words: Array.from(texts[side].words.children, (node) => wordOf(/** @type {HTMLElement} */ (node), stripes.get(node))) }));
      const all = parts.flatMap(({ words }) => words), width = flowOf(ruler, all, NARROW).height > 5 * 26 ? WIDE : NARROW, colours = headSamples(explorer, ruler, shown, width);
      let bottom = 20;
      const flows = parts.map(({ title, words }) => {
        const top = bottom + (title ? 20 : 0), flow = flowOf(ruler, words, width);
        bottom = top + flow.height + 8;
        return { title, top, flow };
      });
      return {
        width, height: bottom + (colours.height || 40) + 4, notes: [note.textContent, shown.length < 2 && scaleNote(explorer, shown[0].scale)],
        draw(pen) {
          const ink = explorer.colour("ink");
          pen.text(about.textContent, 0, 8, { size: 13, weight: 600, fill: ink, most: width });
          for (const { title, top, flow } of flows) {
            if (title) pen.text(title, 0, top - 9, { size: 11, fill: explorer.colour("quiet") });
            drawFlow(explorer, pen, flow, 0, top);
          }
          if (shown.length < 2) drawLegend(explorer, pen, shown[0].scale, 0, bottom + 4);
          drawSamples(explorer, pen, colours, 0, bottom + 4);
        },
      };
    },
    table() {
      const { query: q, key: k, direction: now } = state.get();
      if (!drawn.length || stale || q === null || k === null) return null;
      const [{ cells }] = drawn, { C, rowStarts, colStarts } = cells, side = now === "looks" ? "key" : "query", row = cellAt(rowStarts, q), col = cellAt(colStarts, k), starts = startsOn(cells, side);
      const rows = times(starts.length - 1, (i) => [starts[i], cellLabel(explorer.axes(), cells, side, i), ...drawn.map((one) => digits(one.cells.values[side === "key" ? row * C + i : i * C + col]))]);
      return tableOf(explorer, ["position", side, ...(drawn.length < 2 ? ["weight"] : drawn.map(({ head }) => `head ${head}`))], rows, { title: about.textContent });
    },
  };
}

/** A word as it is shaded. @param {HTMLElement} word @param {import("./figures.js").Word["stripes"]} stripes @returns {import("./figures.js").Word} */
const wordOf = (word, stripes) => ({ text: word.textContent, fill: stripes ? "" : word.style.background, colour: word.style.color, edge: word.ariaSelected === "true" ? "mark" : undefined, stripes });

/** One of several stripes under a word: the larger the weight, the fuller the colour. @param {{colour: string, level: number}} stripe @param {number} at @param {object[]} all */
const stripeStyle = ({ colour, level }, at, all) =>
  `linear-gradient(color-mix(in srgb, ${colour} ${100 * level}%, transparent) 0 0) 0 calc(100% - ${STRIPE * (all.length - 1 - at)}px) / 100% ${STRIPE - 1}px no-repeat`;
