// Pictures and the words around them: a word lights the patches by weight, a patch shows the words that attend to it;
// in a vision transformer, which has no words, a patch shows the patches that it attends to.

import { barList } from "./bars.js";
import { create, isolated, translate } from "./dom.js";
import { weightText } from "./scale.js";

/** What is chosen: a word, or a patch of a picture. @typedef {{word: number} | {patch: number, view: number}} Choice */
/** Weights, words × patches, and the patches that are sinks, if known.
 * @typedef {{weights: Float32Array, sinks: boolean[] | null}} Seen */

/** The most words listed for a patch. */
const MOST_READERS = 6;
/** With at most this number of positions beside the patches, these are class tokens and registers, not words. */
const MOST_EXTRA = 16;
/** The rule of `image_sinks` in Python: this many times an even share, by three quarters of the queries, of these many. */
const [SINK_TIMES, SINK_QUANTILE, SINK_QUERIES, MOST_SINK_QUERIES] = [5, 0.25, 8, 256];

/** @param {Explorer} explorer @returns {Panel} */
export function imagePanel(explorer) {
  const { say, state } = explorer;
  /** @type {{words: number[], names: string[], seen: Seen[], asQueries: boolean} | null} */
  let found = null;
  /** @type {Choice} */
  let chosen = { word: 0 };
  let asked = 0;
  /** @type {ReturnType<typeof frameOf>[]} */
  let frames = [];
  const words = create("p", { class: "image-words", onkeydown: moveWord }), caption = create("p.image-caption.quiet", { role: "status" });
  const list = create("div"), problem = create("p", { class: "problem", role: "status" }), row = create("div", { class: "image-frames" });
  const element = create("section", { class: "image-panel", hidden: true, "data-label": "image-title" },
    create("header", { class: "panel-head" }, create("h2", { "data-text": "image-title" })), create("p", { class: "hint", "data-text": "image-hint" }), problem,
    create("div", { class: "image-columns" }, row, create("div", {}, words, caption, list)));

  const images = () => explorer.record().images;

  /** @param {number} view */
  function frameOf(view) {
    const picture = create("img", { alt: "" }), light = create("canvas", { "aria-hidden": "true" }), mark = create("i", { class: "image-mark" }), sinks = create("div");
    const frame = create("div", { class: "image-frame", role: "application", tabindex: 0, "data-label": "image-keys",
      onkeydown: (/** @type {KeyboardEvent} */ event) => movePatch(event, view), onpointermove: (/** @type {PointerEvent} */ event) => point(event, view) }, picture, light, sinks, mark);
    const name = create("figcaption", {});
    return { picture, light, mark, sinks, frame, name, figure: create("figure", {}, frame, name) };
  }

  async function ask() {
    const mine = ++asked, { layer, head } = state.get(), { T, S, kind } = explorer.record(), all = images();
    const asQueries = all.every((one) => one.side === "queries"), shown = all.map(places), inside = new Set(shown.flat()), length = asQueries ? S : T;
    const outside = Array.from({ length }, (_, i) => i).filter((i) => !all.some((one) => one.side === "both") || !inside.has(i));
    const patchesAsk = !asQueries && length > outside.length && outside.length <= MOST_EXTRA;
    const held = [...inside].filter((at) => at >= 0);
    /** @type {[number, number]} */
    const here = [held.reduce((a, b) => Math.min(a, b), asQueries ? T : S), held.reduce((a, b) => Math.max(a, b), -1) + 1];
    try {
      const { about, arrays } = await explorer.source.rectangle({ layer, head, rows: asQueries ? here : [0, T], cols: asQueries ? [0, S] : here, most: [T, S] });
      if (mine !== asked) return;
      const axes = explorer.axes(), axis = asQueries ? axes.key : axes.query, { high, wide } = about, C = Math.ceil((about.cols[1] - about.cols[0]) / wide);
      const cell = (/** @type {number} */ at, /** @type {number} */ col) =>
        arrays.cells[Math.floor((at - about.rows[0]) / high) * C + Math.floor((col - about.cols[0]) / wide)] / wide;
      const weight = (/** @type {number} */ word, /** @type {number} */ place) => place < 0 ? 0 : asQueries ? cell(place, word) : cell(word, place);
      const exact = high * wide === 1, extra = all.find((one) => one.side === "both")?.extra ?? [];
      const visible = (/** @type {number} */ at) => kind === "decoder" ? S - T + at + 1 : S;
      found = { words: outside, asQueries: patchesAsk, names: outside.map((i) => extra[i] ?? axis.label(axis.unitOf(i))), seen: shown.map((own) => ({
        weights: Float32Array.from(outside.flatMap((word) => own.map((place) => weight(word, place)))),
        sinks: exact && !asQueries && T >= SINK_QUERIES && T <= MOST_SINK_QUERIES ? own.map((place) => isSink(place, T, cell, visible)) : null,
      })) };
      if (patchesAsk) weights = (view, patch, other) => { const from = shown[view][patch]; return from < 0 ? [] : shown[other].map((place) => weight(from, place)); };
      problem.textContent = exact ? "" : say("image-pooled", { high, wide });
      const at = found.words.indexOf(state.get()[asQueries ? "key" : "query"] ?? -1), best = strongest();
      if (!("patch" in chosen) || chosen.view >= shown.length) chosen = { word: at >= 0 ? at : best };
      if (!found.words.length) chosen = { patch: 0, view: 0 };
      draw();
    } catch (error) {
      if (mine === asked) [found, problem.textContent] = [null, explorer.fail(error)];
    }
  }

  /** The weights of a patch on another picture, where patches are queries. @type {(view: number, patch: number, other: number) => number[]} */
  let weights = () => [];

  /** The word with the largest weight. */
  function strongest() {
    let best = 0, most = -1;
    found?.seen.forEach((one, view) => one.weights.forEach((weight, at) => { if (weight > most) [most, best] = [weight, Math.floor(at / size(view))]; }));
    return best;
  }

  const size = (/** @type {number} */ view) => images()[view].grid[0] * images()[view].grid[1];

  function draw() {
    translate(element, say);
    const all = images(), pictures = explorer.overview.pictures;
    if (frames.length !== all.length) {
      frames = all.map((_, view) => frameOf(view));
      row.replaceChildren(...frames.map((one) => one.figure));
      row.classList.toggle("several", all.length > 1);
      translate(element, say);
    }
    all.forEach(({ picture, grid: [rows, cols], name, title }, view) => {
      const { picture: shown, frame, light, name: below } = frames[view], known = picture === null ? null : pictures[picture];
      if (known && shown.src !== known.data) shown.src = known.data;
      shown.hidden = !known;
      shown.alt = name || title[state.get().lang];
      frame.style.aspectRatio = known ? `${known.width} / ${known.height}` : `${cols} / ${rows}`;
      frame.style.setProperty("--across", String(cols));
      frame.style.setProperty("--down", String(rows));
      [light.width, light.height] = [cols, rows];
      below.hidden = all.length === 1;
    });
    if (!found) return;
    words.replaceChildren(...found.names.map((word, i) => create("button", { type: "button", tabindex: -1, onclick: () => choose({ word: i }),
      onpointerenter: () => choose({ word: i }), onfocus: () => choose({ word: i }) }, isolated(word))));
    choose(chosen);
  }

  /** @param {Choice} next */
  function choose(next) {
    if (!found) return;
    chosen = next;
    const { seen, names, asQueries } = found, buttons = /** @type {HTMLElement[]} */ ([...words.children]);
    frames.forEach(({ mark }, view) => { mark.hidden = !("patch" in next) || next.view !== view; });
    if ("patch" in next) {
      const { grid: [down, across] } = images()[next.view], [at, col] = [Math.floor(next.patch / across), next.patch % across];
      frames[next.view].mark.style.inset = `${(100 * at) / down}% ${100 - (100 * (col + 1)) / across}% ${100 - (100 * (at + 1)) / down}% ${(100 * col) / across}%`;
      buttons.forEach((one) => shade(one, 0, false));
      if (asQueries) {
        list.replaceChildren();
        const shares = paint(frames.map((_, view) => weights(next.view, next.patch, view)));
        caption.textContent = say("image-patch-gives", { row: at + 1, col: col + 1, share: percent(shares) }) + sinkText();
        return;
      }
      const n = size(next.view), readers = names.map((label, w) => ({ label, weight: seen[next.view].weights[w * n + next.patch] }));
      const most = Math.max(...readers.map((one) => one.weight)) || 1;
      buttons.forEach((one, w) => shade(one, readers[w].weight / most, false));
      caption.textContent = say("image-patch", { row: at + 1, col: col + 1 });
      const top = readers.slice().sort((a, b) => b.weight - a.weight).slice(0, MOST_READERS).filter((one) => one.weight > 0);
      list.replaceChildren(barList(top.map(({ label, weight }) => ({ label, share: weight / most, text: weightText(weight) }))));
      paint(null);
      return;
    }
    buttons.forEach((one, w) => shade(one, 0, w === next.word));
    list.replaceChildren();
    const shares = paint(seen.map((one, view) => [...one.weights.subarray(next.word * size(view), (next.word + 1) * size(view))]));
    caption.textContent = say("image-word", { word: names[next.word] ?? "", share: percent(shares) }) + sinkText();
  }

  const percent = (/** @type {number[]} */ shares) => (100 * shares.reduce((a, b) => a + b, 0)).toFixed(1);

  /** The share of the drawn weights on sinks. @type {{share: number, count: number}} */
  let onSinks = { share: 0, count: 0 };
  const sinkText = () => onSinks.count ? ` ${say("image-sinks", { count: onSinks.count, share: (100 * onSinks.share).toFixed(1) })}` : "";

  /** @param {HTMLElement} word @param {number} share @param {boolean} current */
  function shade(word, share, current) {
    word.style.setProperty("--size", `${Math.round(70 * share)}%`);
    word.setAttribute("aria-pressed", String(current));
    word.tabIndex = current || (!("word" in chosen) && word === words.firstElementChild) ? 0 : -1;
  }

  /** Darken the pictures where the weight is small; all share one scale. Returns the share on each. @param {number[][] | null} rows */
  function paint(rows) {
    const most = rows?.reduce((top, one) => one.reduce((a, b) => Math.max(a, b), top), 0) || 1, shares = rows?.map((one) => one.reduce((a, b) => a + b, 0)) ?? [];
    onSinks = { share: 0, count: 0 };
    frames.forEach(({ light, sinks, name }, view) => {
      const context = /** @type {CanvasRenderingContext2D} */ (light.getContext("2d")), data = context.createImageData(light.width, light.height);
      rows?.[view]?.forEach((weight, p) => {
        const share = Math.sqrt(weight / most);
        data.data.set(share > 0.5 ? [255, 214, 64, 150 * (share - 0.5)] : [8, 10, 22, 215 * (1 - 2 * share)], 4 * p);
      });
      context.putImageData(data, 0, 0);
      const { title, grid: [down, across] } = images()[view];
      name.textContent = [title[state.get().lang], rows && `${(100 * shares[view]).toFixed(1)} %`].filter(Boolean).join(" · ");
      const marked = found?.seen[view].sinks?.flatMap((is, p) => is ? [p] : []) ?? [];
      sinks.replaceChildren(...(rows ? marked : []).map((p) => {
        const cross = create("i", { class: "image-sink" });
        cross.style.inset = `${(100 * Math.floor(p / across)) / down}% auto auto ${(100 * (p % across)) / across}%`;
        [cross.style.width, cross.style.height] = [`${100 / across}%`, `${100 / down}%`];
        onSinks = { share: onSinks.share + (rows?.[view]?.[p] ?? 0), count: onSinks.count + 1 };
        return cross;
      }));
    });
    return shares;
  }

  /** @param {PointerEvent} event @param {number} view */
  function point(event, view) {
    const box = frames[view].frame.getBoundingClientRect(), { grid: [rows, cols] } = images()[view];
    const place = (/** @type {number} */ share, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    choose({ view, patch: place((event.clientY - box.top) / box.height, rows) * cols + place((event.clientX - box.left) / box.width, cols) });
  }

  /** @param {KeyboardEvent} event @param {number} view */
  function movePatch(event, view) {
    const { grid: [rows, cols] } = images()[view], at = "patch" in chosen && chosen.view === view ? chosen.patch : Math.floor((rows * cols) / 2);
    const [down, across] = [Math.floor(at / cols), at % cols];
    const to = { ArrowUp: [down - 1, across], ArrowDown: [down + 1, across], ArrowLeft: [down, across - 1], ArrowRight: [down, across + 1] }[event.key];
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    if (to[0] >= 0 && to[0] < rows && to[1] >= 0 && to[1] < cols) choose({ view, patch: to[0] * cols + to[1] });
  }

  /** @param {KeyboardEvent} event */
  function moveWord(event) {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const buttons = /** @type {HTMLElement[]} */ ([...words.children]), next = buttons[buttons.findIndex((one) => one.matches(":focus")) + by];
    next?.focus();
  }

  return {
    element,
    update(now, has) {
      element.hidden = !images().length;
      if (element.hidden || now.depth !== "head") return;
      if (has("layer", "head", "lang", "depth") || !found) ask();
      else if (has("query", "key")) {
        const at = found.words.indexOf(now[images()[0].side === "queries" ? "key" : "query"] ?? -1);
        if (at >= 0) choose({ word: at });
      }
    },
  };
}

/** The position of each patch; −1 for a patch that is not in the record. @param {PatchedImage} image */
function places({ grid: [rows, cols], first, positions }) {
  return positions ?? Array.from({ length: rows * cols }, (_, p) => first + p);
}

/** Whether nearly every query attends to a position.
 * @param {number} place @param {number} T @param {(row: number, col: number) => number} cell @param {(row: number) => number} visible */
function isSink(place, T, cell, visible) {
  if (place < 0) return false;
  const shares = Array.from({ length: T }, (_, row) => cell(row, place) * visible(row)).filter((share) => share > 0).sort((a, b) => a - b);
  if (shares.length < SINK_QUERIES) return false;
  const at = SINK_QUANTILE * (shares.length - 1), low = Math.floor(at);
  return shares[low] + (at - low) * ((shares[low + 1] ?? shares[low]) - shares[low]) >= SINK_TIMES;
}
