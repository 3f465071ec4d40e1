// Two heads, or one head of two traces, side by side or as a difference with signed colours.

import { arrowsOf, clamp, create, fill, labelled, segments } from "./dom.js";
import { digits, drawRamp, drawSamples, samplesOf, tableOf, WIDE } from "./figures.js";
import { axisOf, cellLabel, cellName, headTitle } from "./labels.js";
import { drawLegend, scaleNote } from "./legend.js";
import { boxOnScreen, cellBox, drawMap, figureWidth, mapFigure, mapLayout, unitsUnder } from "./map_drawing.js";
import { signedText } from "./number_text.js";
import { canvasPen, sized } from "./pen.js";
import { cellAt, counted, startsOf, times } from "./pooling.js";
import { css, packed, paintCells, pixelsOf, weightText } from "./scale.js";
import { newest } from "./state.js";

/** The most differences listed, the width from which two maps stand side by side, and the space between them. */
const LISTED = 8, BESIDE = 560, GAP = 24, HIGHEST = 560;
/** The difference of equal weights: 0 would be drawn as masked. */
const SAME = 1e-30;
/** The names of two traces, and the colours of cells that only one of them has. */
const AB = /** @type {[string, string]} */ (["A", "B"]), ONLY = ["#2f6fd6", "#c8590e"];

/** The sides that have cells of their own. @param {Pair["only"]} only */
const onlySides = (only) => [0, 1].filter((side) => only.some((one) => one.side === side));

/**
 * The rectangles of cells that one side alone has, from the labels of both sides.
 * @param {(string | null)[][] | null} queries @param {(string | null)[][] | null} keys @returns {Pair["only"]}
 */
function onlyIn(queries, keys) {
  if (!queries || !keys) return [];
  const [rows, cols] = [queries, keys].map(runsOf), found = /** @type {Pair["only"]} */ ([]);
  for (const down of rows) {
    for (const across of cols) {
      const side = down.side ?? across.side;
      if (side !== null && (down.side === null || across.side === null || down.side === across.side)) found.push({ side, box: { rows: down.span, cols: across.span } });
    }
  }
  return found;
}

/** Runs of tokens that both sides have (null), or one alone. @param {(string | null)[][]} pairs */
function runsOf(pairs) {
  const found = /** @type {{side: 0 | 1 | null, span: Span}[]} */ ([]);
  pairs.forEach(([one, two], i) => {
    const side = one === null ? 1 : two === null ? 0 : null, last = found[found.length - 1];
    if (last && last.side === side) last.span[1] = i + 1; else found.push({ side, span: [i, i + 1] });
  });
  return found;
}

/**
 * One side: its own map, and for each of its rows and columns the common one.
 * @typedef {{cells: Cells, axes: Axes, rows: number[], cols: number[]}} Part
 *
 * Two maps; `same` where they can be subtracted: then left and right have common axes, and NaN where one has no token.
 * `names` are short, `titles` stand once above the maps; `only` are the cells that one side alone has.
 * @typedef {{left: Cells, right: Cells, parts: [Part, Part], names: [string, string], titles: [string, string], axes: Axes, same: boolean,
 *   note: string, only: {side: 0 | 1, box: import("./map_drawing.js").Box}[]}} Pair
 * @typedef {{title: string, part: Part, picture: import("./map_drawing.js").Picture}} Drawn
 */

/** @param {Explorer} explorer @returns {Panel} */
export function comparePanel(explorer) {
  const { say, state, overview } = explorer, traces = overview.compare ?? null, latest = newest();
  /** @type {Pair | null} */
  let pair = null;
  /** @type {Drawn[]} */
  let figures = [];
  /** @type {import("./map_drawing.js").Layout[]} */
  let layouts = [];
  /** @type {Span} */
  let at = [0, 0];
  const pick = (/** @type {number} */ layer, /** @type {number} */ head) => state.set({ other: { layer, head } });
  const layers = create("select", { onchange: () => pick(Number(layers.value), 0) });
  const heads = create("select", { onchange: () => pick(other().layer, Number(heads.value)) });
  const choices = create("span.tools", labelled("compare-with", layers), labelled("head", heads));
  const kinds = segments(explorer, "compareAs", ["side", "difference"], "compare-as");
  const maps = create("div.compare-maps", { onkeydown: move, onpointermove: point });
  const legend = create("div.compare-legend.quiet"), readout = create("p.compare-readout");
  const moved = create("p.quiet.compare-moved"), list = create("ol.compare-list"), heading = create("h3#compare-largest");
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
    fill(layers, ...overview.records.map((one, i) => create("option", { value: i }, one.titles[state.get().lang])));
    fill(heads, ...times(explorer.record(layer).heads, (i) => create("option", { value: i }, String(i))));
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
    const both = (/** @type {(one: {layer: number, head: number}, i: number) => string} */ of) => /** @type {[string, string]} */ ([{ layer, head }, there].map(of));
    const [left, right] = await Promise.all([explorer.shownCells(layer, head), explorer.shownCells(there.layer, there.head)]);
    const same = left.R === right.R && left.C === right.C, names = beside ? both((one) => `${say("head")} ${one.head}`) : AB;
    const titles = beside ? names : both((one, i) => `${AB[i]}: ${headTitle(explorer, one.layer, one.head)}`);
    const part = (/** @type {Cells} */ cells, /** @type {Axes} */ axes) => ({ cells, axes, rows: counted(cells.R), cols: counted(cells.C) });
    return { left, right, same, names, titles, only: [], axes: explorer.axes(layer), parts: [part(left, explorer.axes(layer)), part(right, explorer.axes(there.layer))],
      note: same ? "" : say("compare-sizes") };
  }

  /** @returns {Promise<Pair>} */
  async function fromTraces() {
    const { layer, head, lang } = state.get(), { about, arrays } = await explorer.source.compare({ layer, head });
    const { R, C, queries, keys } = about, plain = await explorer.headCells(layer, head);
    const cells = (/** @type {Numbers} */ values, high = R, wide = C) => ({ ...plain, R: high, C: wide, rowStarts: startsOf(0, high, 1), colStarts: startsOf(0, wide, 1),
      values: Float32Array.from(values), attending: new Int32Array(high).fill(1), firstColumn: -1 });
    /** An axis without positions, because those of the two sides differ. @param {Side} side @param {string[] | null} labels @param {number} count @returns {Axis} */
    const named = (side, labels, count) => { const axis = axisOf(side, count, 0, labels); return { ...axis, name: axis.label }; };
    const both = (/** @type {(string | null)[][] | null} */ pairs) => pairs && pairs.map(([one, two]) => (one === two ? one ?? "" : `${one ?? "–"} | ${two ?? "–"}`));
    /** The rows or columns that a side has. @param {(string | null)[][] | null} pairs @param {number} count @param {number} side */
    const held = (pairs, count, side) => counted(count).filter((i) => !pairs || pairs[i][side] !== null);
    const own = (/** @type {(string | null)[][] | null} */ pairs, /** @type {number[]} */ at, /** @type {number} */ side) => pairs && at.map((i) => pairs[i][side] ?? "");
    const part = (/** @type {Numbers} */ values, /** @type {0 | 1} */ side) => {
      const rows = held(queries, R, side), cols = held(keys, C, side), taken = Float32Array.from(rows.flatMap((row) => cols.map((col) => values[row * C + col])));
      return { rows, cols, cells: cells(taken, rows.length, cols.length), axes: { query: named("query", own(queries, rows, side), rows.length), key: named("key", own(keys, cols, side), cols.length) } };
    };
    const titles = /** @type {BothLanguages[]} */ (about.names ?? traces?.names).map((one, i) => `${AB[i]}: ${one[lang]}`);
    return { left: cells(arrays.cells), right: cells(arrays.other), parts: [part(arrays.cells, 0), part(arrays.other, 1)], names: AB, titles: [titles[0], titles[1]], same: true,
      only: onlyIn(queries, keys), axes: { query: named("query", both(queries), R), key: named("key", both(keys), C) }, note: about.note ? say(about.note) : "" };
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
    const found = pair, { left, titles, names, parts, same, axes, only } = found, as = same ? state.get().compareAs : "side", top = differences(found);
    kinds.select(as);
    kinds.allow("difference", same);
    const most = largest(), scale = explorer.scaleOf(parts[0].cells, parts[1].cells), minus = say("compare-minus", { left: names[0], right: names[1] });
    figures = as === "side" ? parts.map((part, i) => ({ title: titles[i], part, picture: { cells: part.cells, scale, pixels: pixelsOf(overview, part.cells, scale) } }))
      : [{ title: names === titles ? minus : `${minus} (${titles.join(", ")})`, part: { cells: left, axes, rows: counted(left.R), cols: counted(left.C) }, picture: differencePicture(found, most, scale) }];
    fill(maps, ...figures.map(({ title }) => create("figure", create("figcaption", title),
      create("div.compare-map", { tabindex: 0, role: "img", "aria-label": `${title}. ${say("compare-map")}` }, create("canvas"), create("i.compare-mark")))));
    drawFigures();
    legend.hidden = as === "side";
    fill(legend, create("span", `−${most.toFixed(2)}  ${say("compare-more", { name: names[0] })}`), gradient(),
      create("span", `${say("compare-more", { name: names[1] })}  +${most.toFixed(2)}`),
      create("span", create("i.masked"), say("compare-masked")), ...onlySides(only).map((side) => create("span", create("i.compare-only", { style: `--own: ${ONLY[side]}` }), say("compare-only", { name: names[side] }))));
    moved.textContent = same ? say("compare-moved", { share: (100 * movedShare(found)).toFixed(1) }) : "";
    fill(list, ...top.map(([by, row, col]) => create("li", create("button.bar-row", { onclick: () => mark([row, col]) },
      create("b", { class: by < 0 ? "minus" : "plus" }, signedText(by)), ` ${cellName(axes, left, "query", row)} → ${cellName(axes, left, "key", col)}`))));
    list.hidden = heading.hidden = !top.length;
  }

  function drawFigures() {
    if (!pair) return;
    const whole = maps.clientWidth || 600, { zoom } = state.get(), wide = figures.length > 1 && whole > BESIDE ? (whole - GAP) / 2 : whole;
    layouts = figures.map(({ part }) => mapLayout(explorer.ruler, part.axes, traces ? null : zoom, wide, HIGHEST));
    maps.querySelectorAll("canvas").forEach((canvas, i) => {
      const own = layouts[i], { part, picture } = figures[i];
      drawMap(explorer, canvasPen(sized(canvas, own.left + own.width + 2, own.top + own.height + 2), explorer.family), own, part.axes, [picture]);
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

  /** The colour of a difference as a share of the largest: the smaller, the nearer to that of the card. @param {number} share @returns {RGB} */
  function signedColour(share) {
    const by = Math.sqrt(Math.min(1, Math.abs(share))), ground = explorer.colour("card").match(/\d+/g) ?? [];
    return /** @type {RGB} */ (overview.colours.diverging[share < 0 ? 40 : 214].map((one, i) => Math.round(Number(ground[i]) + (one - Number(ground[i])) * by)));
  }
  const signedPixel = (/** @type {number} */ share) => packed(signedColour(share));

  /** The largest difference. */
  const largest = () => Math.abs((pair && differences(pair)[0]?.[0]) || 0) || 1;

  function gradient() {
    const bar = create("canvas.compare-gradient", { width: 65, height: 1, "aria-hidden": "true" });
    paintCells(bar, Float32Array.from(times(65, (i) => i / 32 - 1 || SAME)), signedPixel);
    return bar;
  }

  /** @param {Pair} found @param {number} most @param {Scale} scale @returns {import("./map_drawing.js").Picture} */
  function differencePicture({ left, right, parts, only }, most, scale) {
    const has = parts.map(({ rows, cols }) => ({ rows: new Set(rows), cols: new Set(cols) })), { C } = left;
    const common = (/** @type {number} */ i) => has.every(({ rows, cols }) => rows.has(Math.floor(i / C)) && cols.has(i % C));
    const values = right.values.map((value, i) => (common(i) && (value || left.values[i]) ? value - left.values[i] || SAME : 0)), pixels = create("canvas", { width: left.C, height: left.R });
    const broken = packed(overview.colours.nan, 90);
    paintCells(pixels, values, (by) => (by === by ? signedPixel(by / most) : broken));
    return { cells: { ...left, values }, scale, pixels, ink: explorer.colour("ink"), hatched: only.map(({ side, box }) => ({ box, colour: ONLY[side] })) };
  }

  /** @param {Span} to */
  function mark(to) {
    if (!pair || !layouts.length) return;
    const { left, right, axes, same, names } = pair, [row, col] = at = to, i = row * left.C + col;
    maps.querySelectorAll("i").forEach((one, figure) => {
      const own = layouts[figure], { part: { cells, axes: its, rows, cols } } = figures[figure];
      const [r, c] = same ? [rows.indexOf(row), cols.indexOf(col)] : [Math.min(row, cells.R - 1), Math.min(col, cells.C - 1)];
      if ((one.hidden = r < 0 || c < 0)) return;
      const [x, y, width, height] = boxOnScreen(own, cellBox(its, cells, r, c));
      one.hidden = x < own.left - 1 || y < own.top - 1 || x > own.left + own.width || y > own.top + own.height;
      Object.assign(one.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
    });
    const [one, two] = [left.values[i], right.values[i]], text = (/** @type {number} */ value) => (Number.isNaN(value) ? "–" : weightText(value));
    readout.textContent = same ? say("compare-cell", { query: cellName(axes, left, "query", row), key: cellName(axes, left, "key", col), left: names[0], right: names[1],
      one: text(one), two: text(two), by: signedText(two - one) }) : "";
  }

  /** @param {PointerEvent} event */
  function point(event) {
    const map = /** @type {HTMLElement} */ (event.target).closest(".compare-map"), number = [...maps.querySelectorAll(".compare-map")].indexOf(/** @type {HTMLElement} */ (map));
    const place = map && layouts[number] && unitsUnder(layouts[number], map, event);
    if (!place || !pair?.same) return;
    const { cells, axes: { query, key }, rows, cols } = figures[number].part;
    mark([rows[cellAt(cells.rowStarts, query.positionOf(Math.floor(place[0])))], cols[cellAt(cells.colStarts, key.positionOf(Math.floor(place[1])))]]);
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const by = arrowsOf(event);
    if (!by || !pair) return;
    mark([clamp(at[0] + by[0], 0, pair.left.R - 1), clamp(at[1] + by[1], 0, pair.left.C - 1)]);
    explorer.announce(readout.textContent);
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
      const found = pair, { axes, names, titles, only } = found, zoom = traces ? null : state.get().zoom, [{ picture: { scale } }] = figures, most = largest();
      const beside = figures.length > 1, width = beside ? WIDE : figureWidth(axes, zoom), wide = beside ? (WIDE - GAP) / 2 : width;
      const maps = figures.map(({ part, picture }) => mapFigure(explorer, ruler, part.axes, zoom, wide, { pictures: [beside ? picture : differencePicture(found, most, picture.scale)] }));
      const top = Math.max(...maps.map(({ height }) => height)) + 28, alone = samplesOf(ruler, beside ? [] : onlySides(only).map((side) => ({ fill: ONLY[side], text: say("compare-only", { name: names[side] }), hatched: true })), width);
      return {
        width, height: top + 42 + alone.height, ...(traces && { text: "" }), notes: [!beside && names !== titles && titles.join(" · "), say(`rows-${explorer.record().rowsMean}`), ...(beside ? [scaleNote(explorer, scale)] : [moved.textContent])],
        draw(pen) {
          maps.forEach((map, i) => pen.moved(i * (wide + GAP), 22, () => {
            pen.text(beside ? titles[i] : say("compare-minus", { left: names[0], right: names[1] }), 0, -14, { size: 12, weight: 600, fill: explorer.colour("ink"), most: wide });
            map.draw(pen);
          }));
          if (beside) { drawLegend(explorer, pen, scale, 0, top); return; }
          const more = (/** @type {number} */ i) => say("compare-more", { name: names[i] });
          drawSamples(explorer, pen, alone, 0, top + 42);
          drawRamp(explorer, pen, say("figure-difference"), times(64, (i) => css(signedColour(i / 31.5 - 1))),
            [[0, `−${most.toFixed(2)} ${more(0)}`], [0.5, "0"], [1, `${more(1)} +${most.toFixed(2)}`]], 0, top, width);
        },
      };
    },
    table() {
      if (!pair) return null;
      const { left, right, axes, names: [A, B], titles, same, parts } = pair;
      /** @param {Cells} cells @param {Axes} its @param {(i: number, value: number) => (string | number | null)[]} more */
      const listed = (cells, its, more) => Array.from(cells.values, (value, i) =>
        [cellLabel(its, cells, "query", Math.floor(i / cells.C)), cellLabel(its, cells, "key", i % cells.C), ...more(i, value)]);
      if (!same) return tableOf(explorer, ["query", "key", "side", "weight"], parts.flatMap((part, i) => listed(part.cells, part.axes, (_, value) => [[A, B][i], digits(value)])), { titles });
      return tableOf(explorer, ["query", "key", A, B, "difference"],
        listed(left, axes, (i, value) => [digits(value), digits(right.values[i]), digits(right.values[i] - value)]), { titles });
    },
  };
}
