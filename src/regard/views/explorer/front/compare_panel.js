// Two heads, or one head of two traces, side by side or as a difference with signed colours.

import { arrowsOf, clamp, create, labelled, segments } from "./dom.js";
import { digits, drawRamp, tableOf, WIDE } from "./figures.js";
import { axisOf, cellLabel, cellName, headTitle } from "./labels.js";
import { drawLegend, scaleNote } from "./legend.js";
import { boxOnScreen, cellBox, drawMap, figureWidth, mapFigure, mapLayout, unitsUnder } from "./map_drawing.js";
import { signedText } from "./number_text.js";
import { canvasPen, sized } from "./pen.js";
import { cellAt, startsOf, times } from "./pooling.js";
import { css, packed, paintCells, pixelsOf, weightText } from "./scale.js";
import { newest } from "./state.js";

/** The most differences listed, the width from which two maps stand side by side, and the space between them. */
const LISTED = 8, BESIDE = 560, GAP = 24, HIGHEST = 560;

/**
 * Two maps with common axes; `same` where they can be subtracted.
 * @typedef {{left: Cells, right: Cells, titles: [string, string], axes: {query: Axis, key: Axis}, same: boolean, note: string}} Pair
 * @typedef {{title: string, picture: import("./map_drawing.js").Picture}} Figure
 */

/** @param {Explorer} explorer @returns {Panel} */
export function comparePanel(explorer) {
  const { say, state, overview } = explorer, traces = overview.compare ?? null, latest = newest();
  /** @type {Pair | null} */
  let pair = null;
  /** @type {Figure[]} */
  let figures = [];
  /** @type {import("./map_drawing.js").Layout | null} */
  let layout = null;
  /** @type {Span} */
  let at = [0, 0];
  const pick = (/** @type {number} */ layer, /** @type {number} */ head) => state.set({ other: { layer, head } });
  const layers = create("select", { onchange: () => pick(Number(layers.value), 0) });
  const heads = create("select", { onchange: () => pick(other().layer, Number(heads.value)) });
  const choices = create("span.tools", labelled("compare-with", layers), labelled("head", heads));
  const kinds = segments(explorer, "compareAs", ["side", "difference"], "compare-as");
  const maps = create("div.compare-maps", { onkeydown: move, onpointermove: point });
  const legend = create("div.compare-legend.quiet"), readout = create("p.compare-readout");
  const moved = create("p.quiet.compare-moved"), list = create("ol.compare-list"), heading = create("h3", { "data-text": "compare-largest" });
  const problem = create("p.problem", { role: "status" });
  const body = create("div.compare-panel", maps, legend, readout, moved, heading, list);
  const element = create("section.compare-panel", { "data-label": "compare-title" },
    create("div.tools", !traces && choices, create("span.gap"), kinds.element), problem, body);

  function other() {
    const { layer, head, other: chosen } = state.get(), { heads: count } = explorer.record(layer);
    if (chosen) return chosen;
    return count > 1 ? { layer, head: (head + 1) % count } : { layer: (layer + 1) % overview.records.length, head: 0 };
  }

  function drawChoices() {
    const { layer, head } = other();
    layers.replaceChildren(...overview.records.map((one, i) => create("option", { value: i }, one.titles[state.get().lang])));
    heads.replaceChildren(...times(explorer.record(layer).heads, (i) => create("option", { value: i }, String(i))));
    [layers.value, heads.value] = [String(layer), String(head)];
    layers.disabled = overview.records.length < 2;
  }

  const ask = () => latest(traces ? fromTraces() : fromHeads(), (found) => {
    [pair, problem.textContent, body.hidden] = [found, found.note, false];
    at = /** @type {Span} */ (differences(found)[0]?.slice(1) ?? [0, 0]);
    draw();
  }, (error) => { [pair, problem.textContent, body.hidden] = [null, explorer.fail(error), true]; });

  /** @returns {Promise<Pair>} */
  async function fromHeads() {
    const { layer, head } = state.get(), there = other(), beside = layer === there.layer;
    const [left, right] = await Promise.all([explorer.shownCells(layer, head), explorer.shownCells(there.layer, there.head)]);
    const title = (/** @type {number} */ one, /** @type {number} */ number) => (beside ? `${say("head")} ${number}` : headTitle(explorer, one, number));
    const same = left.R === right.R && left.C === right.C;
    return { left, right, same, titles: [title(layer, head), title(there.layer, there.head)], axes: explorer.axes(layer), note: same ? "" : say("compare-sizes") };
  }

  /** @returns {Promise<Pair>} */
  async function fromTraces() {
    const { layer, head, lang } = state.get(), { about, arrays } = await explorer.source.compare({ layer, head });
    const { R, C, queries, keys, names } = about, plain = await explorer.headCells(layer, head);
    const cells = (/** @type {Numbers} */ values) => ({
      ...plain, R, C, rowStarts: startsOf(0, R, 1), colStarts: startsOf(0, C, 1), values: Float32Array.from(values), firstColumn: -1 });
    /** Tokens of both sides, which have no common positions. @param {Side} side @param {number} count @param {(string | null)[][] | null} pairs @returns {Axis} */
    const aligned = (side, count, pairs) => {
      const axis = axisOf(side, count, 0, pairs && pairs.map(([one, two]) => (one === two ? one ?? "" : `${one ?? "–"} | ${two ?? "–"}`)));
      return { ...axis, name: axis.label };
    };
    const titles = /** @type {BothLanguages[]} */ (names ?? traces?.names).map((one) => one[lang]);
    return { left: cells(arrays.cells), right: cells(arrays.other), titles: [titles[0], titles[1]], same: true,
      axes: { query: aligned("query", R, queries), key: aligned("key", C, keys) }, note: about.note ? say(about.note) : "" };
  }

  /** The cells with the largest differences: [right − left, row, column]. @param {Pair} found @returns {[number, number, number][]} */
  function differences({ left, right, same }) {
    if (!same) return [];
    const all = Array.from(left.values, (value, i) => /** @type {Span} */ ([right.values[i] - value, i])).filter(([one]) => Math.abs(one) > 1e-6);
    all.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
    return all.slice(0, LISTED).map(([one, i]) => [one, Math.floor(i / left.C), i % left.C]);
  }

  function draw() {
    drawChoices();
    if (!pair) return;
    const found = pair, { left, right, titles, same, axes } = found, as = same ? state.get().compareAs : "side", top = differences(found);
    kinds.select(as);
    kinds.allow("difference", same);
    const most = largest(), scale = explorer.scaleOf(left, right);
    const plain = (/** @type {Cells} */ cells, /** @type {string} */ title) => ({ title, picture: { cells, scale, pixels: pixelsOf(overview, cells, scale) } });
    figures = as === "side" ? [plain(left, titles[0]), plain(right, titles[1])]
      : [{ title: say("compare-minus", { left: titles[0], right: titles[1] }), picture: differencePicture(found, most, scale) }];
    maps.replaceChildren(...figures.map(({ title }) => create("figure", create("figcaption", title),
      create("div.compare-map", { tabindex: 0, role: "img", "aria-label": `${title}. ${say("compare-map")}` }, create("canvas"), create("i.compare-mark")))));
    drawFigures();
    legend.hidden = as === "side";
    legend.replaceChildren(create("span", `−${most.toFixed(2)}  ${say("compare-more", { name: titles[0] })}`), gradient(),
      create("span", `${say("compare-more", { name: titles[1] })}  +${most.toFixed(2)}`));
    moved.textContent = same ? say("compare-moved", { share: (100 * movedShare(found)).toFixed(1) }) : "";
    list.replaceChildren(...top.map(([by, row, col]) => create("li", create("button.bar-row", { onclick: () => mark([row, col]) },
      create("b", { class: by < 0 ? "minus" : "plus" }, signedText(by)), ` ${cellName(axes, left, "query", row)} → ${cellName(axes, left, "key", col)}`))));
    list.hidden = heading.hidden = !top.length;
  }

  function drawFigures() {
    if (!pair) return;
    const { axes } = pair, whole = maps.clientWidth || 600, { zoom } = state.get(), wide = figures.length > 1 && whole > BESIDE ? (whole - GAP) / 2 : whole;
    const own = mapLayout(explorer.ruler, axes, traces ? null : zoom, wide, HIGHEST);
    layout = own;
    maps.querySelectorAll("canvas").forEach((canvas, i) => {
      drawMap(explorer, canvasPen(sized(canvas, own.left + own.width + 2, own.top + own.height + 2), explorer.family), own, axes, [figures[i].picture]);
    });
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
  const signedColour = (share) => packed(overview.colours.diverging[share < 0 ? 40 : 214], Math.round(255 * Math.sqrt(Math.min(1, Math.abs(share)))));

  /** The same on white. @param {number} share */
  function signedInk(share) {
    const by = Math.sqrt(Math.abs(share)), colour = overview.colours.diverging[share < 0 ? 40 : 214];
    return css(/** @type {RGB} */ (colour.map((one) => Math.round(255 + (one - 255) * by))));
  }

  /** The largest difference. */
  const largest = () => Math.abs((pair && differences(pair)[0]?.[0]) || 0) || 1;

  function gradient() {
    const bar = create("canvas.compare-gradient", { width: 65, height: 1, "aria-hidden": "true" });
    paintCells(bar, Float32Array.from(times(65, (i) => i / 32 - 1)), signedColour);
    return bar;
  }

  /** @param {Pair} found @param {number} most @param {Scale} scale @returns {import("./map_drawing.js").Picture} */
  function differencePicture({ left, right }, most, scale) {
    const values = right.values.map((value, i) => value - left.values[i]), pixels = create("canvas", { width: left.C, height: left.R });
    const broken = packed(overview.colours.nan, 90);
    paintCells(pixels, values, (by) => (by === by ? signedColour(by / most) : broken));
    return { cells: { ...left, values }, scale, pixels, ink: explorer.colour("--ink") };
  }

  /** @param {Span} to */
  function mark(to) {
    if (!pair || !layout) return;
    const { left, right, axes, same, titles } = pair, own = layout, [row, col] = at = to, i = row * left.C + col;
    maps.querySelectorAll("i").forEach((one, figure) => {
      const { cells } = figures[figure].picture, [x, y, width, height] = boxOnScreen(own, cellBox(axes, cells, Math.min(row, cells.R - 1), Math.min(col, cells.C - 1)));
      one.hidden = x < own.left - 1 || y < own.top - 1 || x > own.left + own.width || y > own.top + own.height;
      Object.assign(one.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
    });
    readout.textContent = same ? say("compare-cell", { query: cellName(axes, left, "query", row), key: cellName(axes, left, "key", col), left: titles[0], right: titles[1],
      one: weightText(left.values[i]), two: weightText(right.values[i]), by: signedText(right.values[i] - left.values[i]) }) : "";
  }

  /** @param {PointerEvent} event */
  function point(event) {
    const map = /** @type {HTMLElement} */ (event.target).closest(".compare-map"), place = map && layout && unitsUnder(layout, map, event);
    if (!place || !pair?.same) return;
    const { axes: { query, key }, left } = pair;
    mark([cellAt(left.rowStarts, query.positionOf(Math.floor(place[0]))), cellAt(left.colStarts, key.positionOf(Math.floor(place[1])))]);
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const by = arrowsOf(event);
    if (!by || !pair) return;
    mark([clamp(at[0] + by[0], 0, pair.left.R - 1), clamp(at[1] + by[1], 0, pair.left.C - 1)]);
    explorer.announce(readout.textContent ?? "");
  }

  return {
    element,
    update(now, has) {
      if (now.view !== "compare" || now.depth !== "head") return;
      if (has("layer", "head", "other", "scale", "merge", "lang", "view", "depth")) ask();
      else if (has("compareAs", "theme")) draw();
      else if (has("zoom", "size")) drawFigures();
    },
    figure(ruler) {
      if (!pair) return null;
      const { axes, titles } = pair, zoom = traces ? null : state.get().zoom, [{ picture: { scale } }] = figures, most = largest();
      const beside = figures.length > 1, width = beside ? WIDE : figureWidth(axes, zoom), wide = beside ? (WIDE - GAP) / 2 : width;
      const maps = figures.map(({ picture }) => mapFigure(explorer, ruler, axes, zoom, wide, { pictures: [{ ...picture, ink: picture.ink && explorer.colour("--ink") }] }));
      return {
        width, height: maps[0].height + 70, notes: [say(`rows-${explorer.record().rowsMean}`), ...(beside ? [scaleNote(explorer, scale)] : [moved.textContent])],
        draw(pen) {
          maps.forEach((map, i) => pen.moved(i * (wide + GAP), 22, () => {
            pen.text(figures[i].title, 0, -14, { size: 12, weight: 600, fill: explorer.colour("--ink"), most: wide });
            map.draw(pen);
          }));
          const top = maps[0].height + 28;
          if (beside) { drawLegend(explorer, pen, scale, 0, top); return; }
          const more = (/** @type {number} */ i) => say("compare-more", { name: titles[i] });
          drawRamp(explorer, pen, say("figure-difference"), times(64, (i) => signedInk(i / 31.5 - 1)),
            [{ at: 0, text: `−${most.toFixed(2)} ${more(0)}` }, { at: 0.5, text: "0" }, { at: 1, text: `${more(1)} +${most.toFixed(2)}` }], 0, top, width);
        },
      };
    },
    table() {
      if (!pair) return null;
      const { left, right, axes, titles, same } = pair, [A, B] = titles;
      const labels = (/** @type {Cells} */ cells, /** @type {Side} */ side) => times(side === "query" ? cells.R : cells.C, (i) => cellLabel(axes, cells, side, i));
      const listed = (/** @type {Cells} */ cells) => { const [queries, keys] = [labels(cells, "query"), labels(cells, "key")]; return Array.from(cells.values, (value, i) => ({ query: queries[Math.floor(i / cells.C)], key: keys[i % cells.C], value: digits(value) })); };
      const [one, two] = [listed(left), listed(right)], names = { names: titles };
      if (!same) return tableOf(explorer, ["side", "query", "key", "weight"], [...one.map(({ query, key, value }) => [A, query, key, value]), ...two.map(({ query, key, value }) => [B, query, key, value])], names);
      return tableOf(explorer, ["query", "key", A, B, "difference"], one.map(({ query, key, value }, i) => {
        const other = two[i].value;
        return [query, key, value, other, value === null || other === null ? null : digits(other - value)];
      }), names);
    },
  };
}
