// Pictures and the words around them: a word lights the patches by weight, a patch shows the words that attend to it;
// in a vision transformer, which has no words, a patch lights the patches that it attends to.

import { barList } from "./bars.js";
import { arrowsOf, clamp, create, fill, isolated } from "./dom.js";
import { digits, drawBars, drawFlow, flowOf, NARROW, ROW, tableOf, WIDE } from "./figures.js";
import { counted, times } from "./pooling.js";
import { weightText } from "./scale.js";
import { newest } from "./state.js";

/** What is chosen: a word, or a patch of a picture. @typedef {{word?: number, patch?: number, view?: number}} Choice */

/** The most words listed for a patch. */
const MOST_READERS = 6;
/** With at most this number of positions beside the patches, these are class tokens and registers, not words. */
const MOST_EXTRA = 16;
/** The most words below a saved picture. */
const MOST_NAMED = 60;

/** The height of a picture by its width. @param {HTMLElement} figure */
function heightOf(figure) {
  const [wide, high] = /** @type {HTMLElement} */ (figure.firstChild).style.aspectRatio.split("/").map(Number);
  return high / wide;
}

/** A picture as a canvas of a size. @param {HTMLImageElement} photo @param {number} width @param {number} height */
function copied(photo, width, height) {
  const canvas = create("canvas", { width: Math.round(width), height: Math.round(height) });
  canvas.getContext("2d")?.drawImage(photo, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** @param {Explorer} explorer @returns {Panel} */
export function imagePanel(explorer) {
  const { say, state } = explorer;
  /** The weight of a patch for the query, or key, at a position; the words, and whether patches are queries.
   * @type {{weight: (at: number, place: number) => number, words: number[], names: string[], asks: boolean} | null} */
  let found = null;
  /** @type {Choice} */
  let chosen = { word: 0 };
  /** @type {ReturnType<typeof frameOf>[]} */
  let frames = [];
  /** The words listed for a patch. @type {import("./bars.js").Bar[]} */
  let readers = [];
  const latest = newest();
  const words = create("p.image-words", { onkeydown: moveWord }), caption = create("p.image-caption.quiet", { role: "status" });
  const list = create("div"), problem = create("p.problem", { role: "status" }), row = create("div.image-frames");
  const element = create("section.image-panel", { hidden: true, "data-label": "image-title" },
    create("header.panel-head", create("h2#image-title")), create("p.hint#image-hint"), problem,
    create("div.image-columns", row, create("div", words, caption, list)));

  const images = () => explorer.record().images, asQueries = () => images()[0].side === "queries";

  /** @param {PatchedImage} image @param {number} view */
  function frameOf({ picture, grid: [rows, cols], name, title, first, positions }, view) {
    const shown = picture === null ? null : explorer.overview.pictures[picture], text = title[state.get().lang];
    const light = create("canvas", { "aria-hidden": "true", width: cols, height: rows }), mark = create("i.image-mark"), below = create("figcaption.quiet");
    const frame = create("div.image-frame", { role: "application", tabindex: 0, "aria-label": say("image-keys"),
      style: `aspect-ratio: ${shown?.width ?? cols} / ${shown?.height ?? rows}; --across: ${cols}; --down: ${rows}`,
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const at = chosen.view === view ? chosen.patch ?? 0 : Math.floor((rows * cols) / 2), by = arrowsOf(event);
        if (by) choose({ view, patch: clamp(Math.floor(at / cols) + by[0], 0, rows - 1) * cols + clamp((at % cols) + by[1], 0, cols - 1) });
      },
      onpointermove: (/** @type {PointerEvent} */ event) => {
        const box = frame.getBoundingClientRect(), place = (/** @type {number} */ share, /** @type {number} */ count) => clamp(Math.floor(share * count), 0, count - 1);
        choose({ view, patch: place((event.clientY - box.top) / box.height, rows) * cols + place((event.clientX - box.left) / box.width, cols) });
      } }, shown && create("img", { alt: name || text, src: shown.data }), light, mark);
    return { light, mark, below, text, rows, cols, places: positions ?? times(rows * cols, (p) => first + p), figure: create("figure", frame, below) };
  }

  function ask() {
    const { layer, head } = state.get(), { T, S } = explorer.record(), all = images(), flip = asQueries();
    frames = all.map(frameOf);
    const held = frames.flatMap(({ places }) => places.filter((at) => at >= 0)), inside = new Set(held), both = all.find(({ side }) => side === "both");
    const outside = counted(flip ? S : T).filter((i) => !both || !inside.has(i));
    /** @type {[number, number]} */
    const here = [Math.min(...held), Math.max(...held) + 1];
    // A file may hold the map alone.
    const asked = explorer.record().can.rectangle === "exact"
      ? explorer.source.rectangle({ layer, head, rows: flip ? here : [0, T], cols: flip ? [0, S] : here, most: [T, S] })
      : explorer.headCells(layer, head).then(({ values: cells, rowStarts, colStarts }) => ({ about: { rows: [0, T], cols: [0, S], high: rowStarts[1] - rowStarts[0], wide: colStarts[1] - colStarts[0] }, arrays: { cells } }));
    latest(asked, ({ about, arrays }) => {
      const axes = explorer.axes(), axis = flip ? axes.key : axes.query, { high, wide } = about, C = Math.ceil((about.cols[1] - about.cols[0]) / wide);
      const cell = (/** @type {number} */ at, /** @type {number} */ col) =>
        arrays.cells[Math.floor((at - about.rows[0]) / high) * C + Math.floor((col - about.cols[0]) / wide)] / wide;
      const weight = (/** @type {number} */ at, /** @type {number} */ place) => place < 0 ? 0 : flip ? cell(place, at) : cell(at, place);
      found = { weight, words: outside, names: outside.map((i) => both?.extra[i] ?? axis.at(i)), asks: !!both && outside.length <= MOST_EXTRA };
      problem.textContent = high * wide > 1 ? say("image-pooled", { high, wide }) : "";
      fill(row, ...frames.map(({ figure }) => figure));
      row.classList.toggle("several", all.length > 1);
      fill(words, ...found.names.map((name, word) => create("button", { tabindex: -1, onclick: () => choose({ word }),
        onpointerenter: () => choose({ word }), onfocus: () => choose({ word }) }, isolated(name))));
      const at = outside.indexOf(state.get()[flip ? "key" : "query"] ?? -1), tops = outside.map((word) => held.reduce((top, place) => Math.max(top, weight(word, place)), 0));
      if (chosen.patch === undefined || !(frames[chosen.view ?? 0]?.places[chosen.patch] >= 0))
        chosen = outside.length ? { word: at >= 0 ? at : tops.indexOf(Math.max(...tops)) } : { view: 0, patch: 0 };
      choose(chosen);
    }, (error) => { [found, problem.textContent] = [null, explorer.fail(error)]; });
  }

  /** @param {Choice} next */
  function choose(next) {
    if (!found) return;
    chosen = next;
    const { weight, names, asks, words: at } = found, { word, patch, view = 0 } = next, frame = frames[view], buttons = /** @type {HTMLElement[]} */ ([...words.children]);
    frames.forEach(({ mark }) => { mark.hidden = true; });
    fill(list);
    readers = [];
    let shades = names.map(() => 0);
    if (patch !== undefined) {
      const { rows, cols, mark, places } = frame, y = Math.floor(patch / cols), x = patch % cols, values = { row: y + 1, col: x + 1 };
      mark.hidden = false;
      mark.style.inset = `${(100 * y) / rows}% ${100 - (100 * (x + 1)) / cols}% ${100 - (100 * (y + 1)) / rows}% ${(100 * x) / cols}%`;
      if (asks) caption.textContent = say("image-patch-gives", { ...values, share: paint(places[patch]) });
      else {
        const all = names.map((label, w) => ({ label, weight: weight(at[w], places[patch]) })), most = Math.max(...all.map((one) => one.weight)) || 1;
        shades = all.map((one) => one.weight / most);
        caption.textContent = say("image-patch", values);
        const top = all.sort((a, b) => b.weight - a.weight).slice(0, MOST_READERS).filter((one) => one.weight > 0);
        readers = top.map(({ label, weight }) => ({ label, share: weight / most, text: weightText(weight) }));
        fill(list, barList(readers));
        paint(-1);
      }
    } else caption.textContent = say("image-word", { word: names[word ?? 0], share: paint(at[word ?? 0]) });
    buttons.forEach((one, w) => {
      one.style.setProperty("--size", `${Math.round(70 * shades[w])}%`);
      one.ariaPressed = String(w === word);
      one.tabIndex = w === (word ?? 0) ? 0 : -1;
    });
  }

  /** Darken the pictures where a query attends little; all share one scale. Returns its share on them, in percent. @param {number} at */
  function paint(at) {
    const rows = frames.map(({ places }) => at < 0 ? [] : places.map((place) => found?.weight(at, place) ?? 0)), most = rows.flat().reduce((a, b) => Math.max(a, b), 0) || 1;
    const shares = rows.map((weights, view) => {
      const { light, text, below } = frames[view], context = /** @type {CanvasRenderingContext2D} */ (light.getContext("2d")), data = context.createImageData(light.width, light.height);
      weights.forEach((weight, p) => {
        const share = Math.sqrt(weight / most);
        data.data.set(share > 0.5 ? [255, 214, 64, 150 * (share - 0.5)] : [8, 10, 22, 215 * (1 - 2 * share)], 4 * p);
      });
      context.putImageData(data, 0, 0);
      const share = 100 * weights.reduce((a, b) => a + b, 0);
      below.textContent = rows.length > 1 ? `${text} · ${share.toFixed(1)} %` : "";
      return share;
    });
    return shares.reduce((a, b) => a + b, 0).toFixed(1);
  }

  /** @param {KeyboardEvent} event */
  function moveWord(event) {
    const by = arrowsOf(event), buttons = /** @type {HTMLElement[]} */ ([...words.children]);
    if (by) buttons[clamp(buttons.indexOf(/** @type {HTMLElement} */ (event.target)) + by[0] + by[1], 0, buttons.length - 1)]?.focus();
  }

  /** @param {Pen} ruler @returns {Figure | null} */
  function figure(ruler) {
    if (!found || element.hidden) return null;
    const several = frames.length > 1, width = several ? WIDE : NARROW, across = several ? Math.min(3, frames.length) : 1, wide = (width - 8 * (across - 1)) / across;
    const parts = frames.map(({ figure: node, light, rows, cols, mark, below }) => ({ photo: node.querySelector("img"), light, rows, cols, mark, below: below.textContent, high: wide * heightOf(node) }));
    const tallest = Math.max(...parts.map(({ high }) => high)) + (several ? 20 : 6), bottom = Math.ceil(parts.length / across) * tallest;
    const flow = flowOf(ruler, found.names.length > MOST_NAMED ? [] : found.names.map((text, i) => ({ text, edge: words.children[i].getAttribute("aria-pressed") === "true" ? "mark" : undefined })), width);
    return {
      width, height: bottom + 24 + flow.height + readers.length * ROW, notes: [problem.textContent, say("figure-image")],
      draw(pen) {
        const ink = explorer.colour("ink");
        parts.forEach(({ photo, light, rows, cols, mark, below, high }, i) => {
          const x = (i % across) * (wide + 8), y = Math.floor(i / across) * tallest;
          if (photo?.complete && photo.naturalWidth) pen.image(copied(photo, 2 * wide, 2 * high), [0, 0, 2 * wide, 2 * high], [x, y, wide, high]);
          else pen.rect(x, y, wide, high, explorer.colour("hidden"));
          pen.image(light, [0, 0, light.width, light.height], [x, y, wide, high]);
          for (let c = 1; c < cols; c++) pen.line([x + (c * wide) / cols, y, x + (c * wide) / cols, y + high], "#fff", 1, 0.3);
          for (let r = 1; r < rows; r++) pen.line([x, y + (r * high) / rows, x + wide, y + (r * high) / rows], "#fff", 1, 0.3);
          const { view = 0, patch } = chosen;
          if (!mark.hidden && view === i && patch !== undefined) pen.rect(x + ((patch % cols) * wide) / cols, y + (Math.floor(patch / cols) * high) / rows, wide / cols, high / rows, null, explorer.colour("mark"), 2);
          pen.text(below, x, y + high + 9, { size: 11, fill: ink, most: wide });
        });
        pen.text(caption.textContent, 0, bottom + 9, { size: 12, weight: 600, fill: ink, most: width });
        drawFlow(explorer, pen, flow, 0, bottom + 20);
        drawBars(explorer, pen, readers, 0, bottom + 22 + flow.height, width);
      },
    };
  }

  /** The weights of the pictures' patches for the chosen word, or of the words for the chosen patch. */
  function table() {
    if (!found || element.hidden) return null;
    const { weight, words: at, names, asks } = found, { word, patch, view = 0 } = chosen;
    if (patch !== undefined && !asks) return tableOf(explorer, ["word", "position", "weight"], names.map((name, w) => [name, at[w], digits(weight(at[w], frames[view].places[patch]))]), { picture: view, patch });
    const asked = patch === undefined ? at[word ?? 0] : frames[view].places[patch];
    return tableOf(explorer, ["picture", "row", "column", "weight"], frames.flatMap(({ places, cols }, i) => places.map((place, p) => [i, Math.floor(p / cols), p % cols, digits(weight(asked, place))])), { asked: patch === undefined ? names[word ?? 0] : patch });
  }

  return {
    element, figure, table,
    update(now, has) {
      element.hidden = !images().length;
      if (element.hidden || now.depth !== "head") return;
      if (has("layer", "head", "lang", "depth") || !found) ask();
      else if (has("query", "key")) {
        const at = found.words.indexOf(now[asQueries() ? "key" : "query"] ?? -1);
        if (at >= 0) choose({ word: at });
      }
    },
  };
}
