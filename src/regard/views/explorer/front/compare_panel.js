// Two heads, or one head of two traces, side by side or as a difference with signed colours.

import { create, segments, translate } from "./dom.js";
import { headTitle } from "./labels.js";
import { signedText } from "./number_text.js";
import { pixelsOf, weightText } from "./scale.js";

/** The most differences listed, and the most labels drawn along a side. */
const LISTED = 8, LABELS = 40;

/**
 * Two maps of one size with the names of their rows and columns; null where they cannot be subtracted.
 * @typedef {{left: Cells, right: Cells, titles: [string, string], names: {query(row: number): string, key(col: number): string}, same: boolean, note: string}} Pair
 */

/** @param {Explorer} explorer @returns {Panel} */
export function comparePanel(explorer) {
  const { say, state, overview } = explorer, traces = overview.compare ?? null;
  /** @type {Pair | null} */
  let pair = null;
  /** @type {[number, number]} */
  let at = [0, 0];
  let asked = 0;
  const layers = create("select", { onchange: () => pick(Number(layers.value), 0) });
  const heads = create("select", { onchange: () => pick(other().layer, Number(heads.value)) });
  const choices = create("span", { class: "compare-with" }, create("label", { class: "chooser" }, create("span", { "data-text": "compare-with" }), layers),
    create("label", { class: "chooser" }, create("span", { "data-text": "head" }), heads));
  const kinds = segments("compare-as", [["side", "compare-side"], ["difference", "compare-difference"]],
    (value) => state.set({ compareAs: /** @type {"side" | "difference"} */ (value) }));
  const maps = create("div", { class: "compare-maps", onkeydown: moveCell, onpointermove: point });
  const legend = create("div", { class: "compare-legend" }), readout = create("p", { class: "compare-readout" });
  const moved = create("p", { class: "compare-moved" }), list = create("ol", { class: "compare-list" });
  const problem = create("p", { class: "problem", role: "status" });
  const body = create("div", { class: "compare-body" }, create("div", {}, maps, legend, readout),
    create("div", {}, moved, create("h3", { "data-text": "compare-largest" }), list));
  const element = create("section", { class: "compare-panel", "data-label": "compare-title" },
    create("div", { class: "compare-bar" }, !traces && choices, kinds.element), problem, body);

  const pick = (/** @type {number} */ layer, /** @type {number} */ head) => state.set({ other: { layer, head } });
  function other() {
    const { layer, head, other: chosen } = state.get(), { heads: count } = explorer.record(layer);
    if (chosen) return chosen;
    return count > 1 ? { layer, head: (head + 1) % count } : { layer: (layer + 1) % overview.records.length, head: 0 };
  }

  function drawChoices() {
    const { lang } = state.get(), { layer, head } = other();
    layers.replaceChildren(...overview.records.map((one, i) => create("option", { value: i }, one.titles[lang])));
    heads.replaceChildren(...Array.from({ length: explorer.record(layer).heads }, (_, i) => create("option", { value: i }, String(i))));
    [layers.value, heads.value] = [String(layer), String(head)];
    layers.disabled = overview.records.length < 2;
  }

  async function ask() {
    const mine = ++asked;
    try {
      const found = await (traces ? fromTraces() : fromHeads());
      if (mine !== asked) return;
      [pair, problem.textContent] = [found, found.note];
      at = /** @type {[number, number]} */ (differences(found)[0]?.slice(1) ?? [0, 0]);
      draw();
    } catch (error) {
      if (mine !== asked) return;
      [pair, problem.textContent] = [null, explorer.fail(error)];
    }
    body.hidden = !pair;
  }

  /** @returns {Promise<Pair>} */
  async function fromHeads() {
    const { layer, head } = state.get(), there = other(), axes = explorer.axes(layer);
    const [left, right] = await Promise.all([explorer.shownCells(layer, head), explorer.shownCells(there.layer, there.head)]);
    const same = left.R === right.R && left.C === right.C;
    const name = (/** @type {Axis} */ axis, /** @type {ArrayLike<number>} */ starts) => (/** @type {number} */ i) => axis.name(axis.unitOf(starts[i]), axis.unitOf(starts[i + 1] - 1) + 1);
    const title = (/** @type {number} */ one, /** @type {number} */ number) => (layer === there.layer ? `${say("head")} ${number}` : headTitle(explorer, one, number));
    return { left, right, same, titles: [title(layer, head), title(there.layer, there.head)],
      names: { query: name(axes.query, left.rowStarts), key: name(axes.key, left.colStarts) }, note: same ? "" : say("compare-sizes") };
  }

  /** @returns {Promise<Pair>} */
  async function fromTraces() {
    const { layer, head, lang } = state.get(), { about, arrays } = await explorer.source.compare({ layer, head });
    const { R, C, queries, keys, names } = about, { headCells } = explorer, plain = await headCells(layer, head);
    const cells = (/** @type {Numbers} */ values) => ({ ...plain, R, C, values: Float32Array.from(values), firstColumn: -1 });
    const named = (/** @type {(string | null)[][] | null} */ pairs) => (/** @type {number} */ i) => {
      const [one, two] = pairs?.[i] ?? [String(i), String(i)];
      return one === two ? one ?? "" : `${one ?? "–"} | ${two ?? "–"}`;
    };
    const titles = /** @type {BothLanguages[]} */ (names ?? traces?.names).map((one) => one[lang]);
    return { left: cells(arrays.cells), right: cells(arrays.other), titles: [titles[0], titles[1]], same: true,
      names: { query: named(queries), key: named(keys) }, note: about.note ? say(about.note) : "" };
  }

  /** The cells with the largest differences: [right − left, row, column]. @param {Pair} found @returns {[number, number, number][]} */
  function differences({ left, right, same }) {
    if (!same) return [];
    const all = Array.from(left.values, (value, i) => /** @type {[number, number]} */ ([right.values[i] - value, i])).filter(([one]) => Math.abs(one) > 1e-6);
    all.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
    return all.slice(0, LISTED).map(([one, i]) => [one, Math.floor(i / left.C), i % left.C]);
  }

  function draw() {
    translate(element, say);
    drawChoices();
    if (!pair) return;
    const found = pair, { left, right, titles, same } = found, as = same ? state.get().compareAs : "side", top = differences(found);
    body.dataset.as = as;
    kinds.select(as);
    kinds.allow("difference", same);
    const most = Math.abs(top[0]?.[0] ?? 0) || 1, scale = explorer.scaleOf(left, right);
    maps.replaceChildren(...(as === "side"
      ? [figure(found, titles[0], pixelsOf(overview, left, scale)), figure(found, titles[1], pixelsOf(overview, right, scale))]
      : [figure(found, say("compare-minus", { left: titles[0], right: titles[1] }), differencePixels(found, most))]));
    legend.hidden = as === "side";
    legend.replaceChildren(create("span", {}, `−${most.toFixed(2)}  ${say("compare-more", { name: titles[0] })}`), gradient(),
      create("span", {}, `${say("compare-more", { name: titles[1] })}  +${most.toFixed(2)}`));
    moved.textContent = same ? say("compare-moved", { share: (100 * movedShare(found)).toFixed(1) }) : "";
    list.replaceChildren(...top.map(([by, row, col]) => create("li", {}, create("button", { type: "button", onclick: () => mark([row, col]) },
      create("b", { class: by < 0 ? "minus" : "plus" }, signedText(by)), ` ${found.names.query(row)} → ${found.names.key(col)}`))));
    list.hidden = /** @type {HTMLElement} */ (list.previousElementSibling).hidden = !top.length;
    mark(at);
  }

  /** The share of attention that goes to other keys, as a mean over the queries. @param {Pair} found */
  function movedShare({ left, right }) {
    let sum = 0, rows = 0;
    for (let row = 0; row < left.R; row++) {
      let apart = 0, seen = 0;
      for (let i = row * left.C; i < (row + 1) * left.C; i++) {
        const by = Math.abs(left.values[i] - right.values[i]);
        if (by === by) { apart += by / 2; seen += left.values[i] + right.values[i]; }
      }
      if (seen > 0) { sum += apart; rows++; }
    }
    return rows ? sum / rows : 0;
  }

  /** The colour of a difference as a share of the largest: smaller ones are more transparent. @param {number} share */
  const signedColour = (share) => {
    const [red, green, blue] = overview.colours.diverging[share < 0 ? 40 : 214];
    return [red, green, blue, Math.round(255 * Math.sqrt(Math.min(1, Math.abs(share))))];
  };

  function gradient() {
    const bar = create("span", { class: "compare-gradient", "aria-hidden": "true" });
    const stops = Array.from({ length: 17 }, (_, i) => signedColour(i / 8 - 1)).map(([red, green, blue, alpha]) => `rgb(${red} ${green} ${blue} / ${alpha / 255})`);
    bar.style.background = `linear-gradient(to right, ${stops.join()})`;
    return bar;
  }

  /** One pixel per cell. @param {Pair} found @param {number} most */
  function differencePixels({ left, right }, most) {
    const canvas = create("canvas", { width: left.C, height: left.R }), context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const image = context.createImageData(left.C, left.R);
    left.values.forEach((value, i) => {
      const by = right.values[i] - value;
      image.data.set(by === by ? signedColour(by / most) : [...overview.colours.nan, 90], 4 * i);
    });
    context.putImageData(image, 0, 0);
    return canvas;
  }

  /** @param {Pair} found @param {string} title @param {HTMLCanvasElement} canvas */
  function figure({ left: { R, C }, names }, title, canvas) {
    const side = (/** @type {string} */ name, /** @type {number} */ count, /** @type {(i: number) => string} */ label) => create("div", { class: name, "aria-hidden": "true" },
      ...(count > LABELS ? [] : Array.from({ length: count }, (_, i) => create("span", {}, label(i).replace(/ \(\d+\)$/, "")))));
    const map = create("div", { class: "compare-map", tabindex: 0, role: "img", "aria-label": `${title}. ${say("compare-map")}` }, canvas, create("i", { class: "compare-mark" }));
    return create("figure", { style: `--cells: ${Math.max(R, C)}` }, create("figcaption", {}, title), side("compare-cols", C, names.key), side("compare-rows", R, names.query), map);
  }

  /** @param {[number, number]} to */
  function mark(to) {
    if (!pair) return;
    const { left, right, names, same, titles } = pair, [row, col] = at = to, i = row * left.C + col;
    for (const one of /** @type {NodeListOf<HTMLElement>} */ (maps.querySelectorAll(".compare-mark"))) {
      one.style.inset = `${(100 * row) / left.R}% ${100 - (100 * (col + 1)) / left.C}% ${100 - (100 * (row + 1)) / left.R}% ${(100 * col) / left.C}%`;
    }
    readout.textContent = same ? say("compare-cell", { query: names.query(row), key: names.key(col), left: titles[0], right: titles[1],
      one: weightText(left.values[i]), two: weightText(right.values[i]), by: signedText(right.values[i] - left.values[i]) }) : "";
  }

  /** @param {PointerEvent} event */
  function point(event) {
    const map = /** @type {HTMLElement} */ (event.target).closest(".compare-map");
    if (!map || !pair?.same) return;
    const box = map.getBoundingClientRect(), { R, C } = pair.left;
    const place = (/** @type {number} */ share, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    mark([place((event.clientY - box.top) / box.height, R), place((event.clientX - box.left) / box.width, C)]);
  }

  /** @param {KeyboardEvent} event */
  function moveCell(event) {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by || !pair) return;
    event.preventDefault();
    event.stopPropagation();
    mark([Math.max(0, Math.min(pair.left.R - 1, at[0] + by[0])), Math.max(0, Math.min(pair.left.C - 1, at[1] + by[1]))]);
    explorer.announce(readout.textContent ?? "");
  }

  return {
    element,
    update(now, changed) {
      if (now.view !== "compare" || now.depth !== "head") return;
      if (changed.size === 1 && changed.has("compareAs")) draw();
      else if (["layer", "head", "other", "scale", "merge", "lang", "view", "depth"].some((name) => changed.has(name))) ask();
    },
  };
}
