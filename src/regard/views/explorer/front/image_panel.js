// A picture and the words around it: a word lights the patches by weight, a patch shows the words that attend to it.

import { barList } from "./bars.js";
import { arrowsOf, clamp, create, isolated } from "./dom.js";
import { times } from "./pooling.js";
import { weightText } from "./scale.js";
import { newest } from "./state.js";

/** What is chosen: a word or a patch. @typedef {{word: number} | {patch: number}} Choice */

/** The most words listed for a patch. */
const MOST_READERS = 6;

/** @param {Explorer} explorer @returns {Panel} */
export function imagePanel(explorer) {
  const { say, state } = explorer;
  /** Weights, words × patches, and the words' positions. @type {{weights: Float32Array, words: number[], names: string[], exact: boolean} | null} */
  let found = null;
  /** @type {Choice} */
  let chosen = { word: 0 };
  const latest = newest();
  const picture = create("img", { alt: "" }), light = create("canvas", { "aria-hidden": "true" }), mark = create("i.image-mark");
  const frame = create("div.image-frame", { role: "application", tabindex: 0, "data-label": "image-keys", onkeydown: movePatch,
    onpointermove: point }, picture, light, mark);
  const words = create("p.image-words", { onkeydown: moveWord }), caption = create("p.image-caption.quiet", { role: "status" });
  const list = create("div"), problem = create("p.problem", { role: "status" });
  const element = create("section.image-panel", { hidden: true, "data-label": "image-title" },
    create("header.panel-head", create("h2", { "data-text": "image-title" })), create("p.hint", { "data-text": "image-hint" }), problem,
    create("div.image-columns", frame, create("div", words, caption, list)));

  const image = () => /** @type {NonNullable<Attention["image"]>} */ (explorer.record().image);
  const patches = () => image().grid[0] * image().grid[1];

  function ask() {
    const { layer, head } = state.get(), { T, S } = explorer.record(), { first, side } = image(), n = patches();
    const asQueries = side === "queries";
    /** @type {[number, number]} */
    const here = [first, first + n];
    latest(explorer.source.rectangle({ layer, head, rows: asQueries ? here : [0, T], cols: asQueries ? [0, S] : here, most: [T, S] }), ({ about, arrays }) => {
      const outside = times(asQueries ? S : T, (i) => i).filter((i) => side !== "both" || i < first || i >= first + n);
      const axes = explorer.axes(), axis = asQueries ? axes.key : axes.query, { high, wide } = about, C = Math.ceil((about.cols[1] - about.cols[0]) / wide);
      const cell = (/** @type {number} */ row, /** @type {number} */ col) =>
        arrays.cells[Math.floor((row - about.rows[0]) / high) * C + Math.floor((col - about.cols[0]) / wide)] / wide;
      const weights = new Float32Array(outside.length * n);
      outside.forEach((word, w) => { for (let p = 0; p < n; p++) weights[w * n + p] = asQueries ? cell(first + p, word) : cell(word, first + p); });
      found = { weights, words: outside, names: outside.map((i) => axis.label(axis.unitOf(i))), exact: high * wide === 1 };
      problem.textContent = found.exact ? "" : say("image-pooled", { high, wide });
      const at = found.words.indexOf(state.get()[asQueries ? "key" : "query"] ?? -1);
      if (!("patch" in chosen)) chosen = { word: at >= 0 ? at : Math.floor(weights.reduce((best, one, i) => (one > weights[best] ? i : best), 0) / n) };
      draw();
    }, (error) => { [found, problem.textContent] = [null, explorer.fail(error)]; });
  }

  function draw() {
    const { width, height, data, grid: [rows, cols], name } = image();
    if (picture.src !== data) picture.src = data;
    picture.alt = name;
    frame.style.aspectRatio = `${width} / ${height}`;
    frame.style.setProperty("--across", String(cols));
    frame.style.setProperty("--down", String(rows));
    [light.width, light.height] = [cols, rows];
    if (!found) return;
    words.replaceChildren(...found.names.map((word, i) => create("button", { tabindex: -1, onpointerenter: () => choose({ word: i }), onfocus: () => choose({ word: i }) }, isolated(word))));
    choose(chosen);
  }

  /** @param {Choice} next */
  function choose(next) {
    if (!found) return;
    chosen = next;
    const n = patches(), { weights, names } = found, buttons = /** @type {HTMLElement[]} */ ([...words.children]);
    mark.hidden = !("patch" in next);
    if ("patch" in next) {
      const readers = names.map((label, w) => ({ label, weight: weights[w * n + next.patch] }));
      const most = Math.max(...readers.map((one) => one.weight)) || 1;
      buttons.forEach((one, w) => shade(one, readers[w].weight / most, false));
      const [row, col] = [Math.floor(next.patch / image().grid[1]), next.patch % image().grid[1]];
      const { grid: [down, across] } = image();
      mark.style.inset = `${(100 * row) / down}% ${100 - (100 * (col + 1)) / across}% ${100 - (100 * (row + 1)) / down}% ${(100 * col) / across}%`;
      caption.textContent = say("image-patch", { row: row + 1, col: col + 1 });
      const top = readers.slice().sort((a, b) => b.weight - a.weight).slice(0, MOST_READERS).filter((one) => one.weight > 0);
      list.replaceChildren(barList(top.map(({ label, weight }) => ({ label, share: weight / most, text: weightText(weight) }))));
      paint(null);
      return;
    }
    const row = weights.subarray(next.word * n, (next.word + 1) * n);
    buttons.forEach((one, w) => shade(one, 0, w === next.word));
    caption.textContent = say("image-word", { word: names[next.word] ?? "", share: (100 * row.reduce((a, b) => a + b, 0)).toFixed(1) });
    list.replaceChildren();
    paint(row);
  }

  /** @param {HTMLElement} word @param {number} share @param {boolean} current */
  function shade(word, share, current) {
    word.style.setProperty("--size", `${Math.round(70 * share)}%`);
    word.setAttribute("aria-pressed", String(current));
    word.tabIndex = current || (!("word" in chosen) && word === words.firstElementChild) ? 0 : -1;
  }

  /** Darken the picture where the weight is small. @param {Float32Array | null} row */
  function paint(row) {
    const context = /** @type {CanvasRenderingContext2D} */ (light.getContext("2d")), data = context.createImageData(light.width, light.height);
    const most = row ? Math.max(...row) || 1 : 1;
    row?.forEach((weight, p) => {
      const share = Math.sqrt(weight / most);
      data.data.set(share > 0.5 ? [255, 214, 64, 150 * (share - 0.5)] : [8, 10, 22, 215 * (1 - 2 * share)], 4 * p);
    });
    context.putImageData(data, 0, 0);
  }

  /** @param {PointerEvent} event */
  function point(event) {
    const box = frame.getBoundingClientRect(), { grid: [rows, cols] } = image();
    const place = (/** @type {number} */ share, /** @type {number} */ count) => clamp(Math.floor(share * count), 0, count - 1);
    choose({ patch: place((event.clientY - box.top) / box.height, rows) * cols + place((event.clientX - box.left) / box.width, cols) });
  }

  /** @param {KeyboardEvent} event */
  function movePatch(event) {
    const { grid: [rows, cols] } = image(), at = "patch" in chosen ? chosen.patch : Math.floor((rows * cols) / 2), by = arrowsOf(event);
    if (by) choose({ patch: clamp(Math.floor(at / cols) + by[0], 0, rows - 1) * cols + clamp((at % cols) + by[1], 0, cols - 1) });
  }

  /** @param {KeyboardEvent} event */
  function moveWord(event) {
    const by = arrowsOf(event), buttons = /** @type {HTMLElement[]} */ ([...words.children]);
    if (by) buttons[clamp(buttons.indexOf(/** @type {HTMLElement} */ (event.target)) + by[0] + by[1], 0, buttons.length - 1)]?.focus();
  }

  return {
    element,
    update(now, has) {
      element.hidden = !explorer.record().image;
      if (element.hidden || now.depth !== "head") return;
      if (has("layer", "head", "lang", "depth") || !found) ask();
      else if (has("query", "key")) {
        const at = found.words.indexOf(now[image().side === "queries" ? "key" : "query"] ?? -1);
        if (at >= 0) choose({ word: at });
      }
    },
  };
}
