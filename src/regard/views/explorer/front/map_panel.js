// The map of one head on a canvas: zoom and move as on a map, exact parts where cells cover several tokens.

import { togglePin } from "./actions.js";
import { floats } from "./arrays.js";
import { arrowsOf, button, clamp, create } from "./dom.js";
import { axesOfPart, cellName, partText } from "./labels.js";
import { NARROW, weightsTable } from "./figures.js";
import { drawLegend, legend, scaleNote } from "./legend.js";
import { holds } from "./neighbours_panel.js";
import { boxOnScreen, cellBox, drawMap, drawSelection, drawTitles, figureWidth, mapFigure, titledLayout, unitsUnder } from "./map_drawing.js";
import { canvasPen, sized } from "./pen.js";
import { cellAt, startsOf } from "./pooling.js";
import { pixelsOf, weightText, withoutFirst } from "./scale.js";
import { movedBy, showing, visiblePart, zoomedBy } from "./zoom.js";

/** @typedef {import("./map_drawing.js").Picture} Picture */
/** Smaller cells of the visible part, with the labels of their tokens. @typedef {Picture & {axes: Axes}} Detail */
const MOST_PIXELS = 512, WAIT = 120;

/** @param {Explorer} explorer @param {(detail: Detail | null) => void} onDetail @returns {Panel} */
export function mapPanel(explorer, onDetail) {
  const { state, family, ruler, say } = explorer;
  const base = create("canvas.map", { tabindex: 0, role: "application", "data-label": "map-label" });
  const over = create("canvas.over", { "aria-hidden": "true" }), tip = create("p.tip", { "aria-hidden": "true" }), frame = create("div.map-frame", base, over, tip);
  const meaning = create("p.quiet.meaning"), failure = create("p.failure", { role: "alert", hidden: true });
  const zoomOut = button("zoom-all", () => state.set({ zoom: null }));
  const keys = legend(explorer), under = create("div.under", keys.element, create("div", meaning, zoomOut));
  const element = create("div.map-panel", failure, frame, under);
  /** @type {Picture | null} */
  let whole = null;
  /** @type {Detail | null} */
  let detail = null;
  let at = titledLayout(ruler, explorer.axes(), null, 600, 600), timer = 0, note = "";

  const visible = () => state.get().depth === "head" && state.get().view === "map", axesNow = () => detail?.axes ?? explorer.axes();
  const refine = (/** @type {Detail | null} */ found) => { detail = found; onDetail(found); };
  /** @param {Cells} cells @returns {Picture} */
  const pictureOf = (cells) => { const scale = explorer.scaleOf(cells); return { cells, scale, pixels: pixelsOf(explorer.overview, cells, scale) }; };

  /** Ask for smaller cells where the visible part is enlarged. */
  const askForDetail = () => {
    clearTimeout(timer);
    const { zoom, layer, head, scale } = state.get(), record = explorer.record();
    if (!zoom || !whole || scale === "renormalised" || record.can.rectangle === "none" || (record.high === 1 && record.wide === 1)) return;
    const own = whole, rows = /** @type {Span} */ ([Math.floor(zoom.rows[0]), Math.min(record.T, Math.ceil(zoom.rows[1]))]);
    const cols = /** @type {Span} */ ([Math.floor(zoom.cols[0]), Math.min(record.S, Math.ceil(zoom.cols[1]))]);
    const most = /** @type {Span} */ ([Math.min(MOST_PIXELS, Math.ceil(at.height)), Math.min(MOST_PIXELS, Math.ceil(at.width))]);
    timer = setTimeout(async () => {
      try {
        const { about, arrays } = await explorer.source.rectangle({ layer, head, rows, cols, most });
        if (own !== whole || state.get().zoom !== zoom) return;
        refine({ ...partOf(about, arrays), axes: axesOfPart(explorer.record(), explorer.axes(), about) });
        note = about.note ? say(`note-${about.note.replace(/^explorer-/, "")}`) : "";
      } catch (error) {
        note = /** @type {Failure} */ (error).key === "not-stored" ? say("note-stored") : explorer.fail(error);
      }
      draw();
    }, WAIT);
  };

  /** @param {any} about @param {Record<string, Numbers>} arrays @returns {Picture} */
  const partOf = ({ rows, cols, high, wide }, arrays) => {
    const { firstKey, first, even } = explorer.record(), { scale: name, head } = state.get();
    const rowStarts = startsOf(rows[0], rows[1], high), colStarts = startsOf(cols[0], cols[1], wide);
    const firstColumn = firstKey >= cols[0] && firstKey < cols[1] ? cellAt(colStarts, firstKey) : -1;
    return pictureOf(withoutFirst({
      R: rowStarts.length - 1, C: colStarts.length - 1, rowStarts, colStarts, values: floats(arrays.cells), firstColumn,
      attending: /** @type {Int32Array} */ (arrays.attending), first: first[head] ?? null, even,
    }, name));
  };

  const pictures = () => [whole, detail].filter((one) => one !== null);
  const draw = () => {
    if (!whole || !visible()) return;
    const wide = Math.max(220, element.clientWidth), high = Math.max(320, Math.min(760, 0.82 * innerHeight));
    at = titledLayout(ruler, axesNow(), state.get().zoom, wide, high);
    const [across, down] = [at.left + at.width + 8, at.top + at.height + 6];
    const pen = canvasPen(sized(base, across, down), family);
    drawTitles(explorer, pen, at);
    drawMap(explorer, pen, at, axesNow(), pictures());
    keys.update((detail ?? whole).scale);
    tellMeaning();
    drawOver();
  };

  /** What rows and one cell stand for. */
  const meanings = () => {
    const { cells } = detail ?? /** @type {Picture} */ (whole), { zoom, merge } = state.get(), record = explorer.record();
    const high = cells.rowStarts[1] - cells.rowStarts[0], wide = cells.colStarts[1] - cells.colStarts[0], single = high === 1 && wide === 1;
    const unit = merge !== "tokens" && record.labels[merge] ? say(`cell-${merge}`) : single ? say("cell-exact") : say("cell-pooled", { high, wide });
    const part = zoom && partText(explorer, explorer.axes(), at);
    return { high, wide, texts: [say(`rows-${record.rowsMean}`), unit, part, zoom && note, record.prompt !== null && say("prompt", record)] };
  };
  const tellMeaning = () => {
    meaning.textContent = meanings().texts.filter(Boolean).join(" · ");
    zoomOut.hidden = !state.get().zoom;
  };

  /** A cell in units, of the finest picture that has it. @param {number} query @param {number} key */
  const boxOf = (query, key) => {
    const { cells, row, col } = cellOf(query, key);
    return cellBox(explorer.axes(), cells, row, col);
  };
  /** @param {number} query @param {number} key */
  const cellOf = (query, key) => {
    const { cells } = detail && holds(detail.cells, query, key) ? detail : /** @type {Picture} */ (whole);
    return { cells, row: cellAt(cells.rowStarts, query), col: cellAt(cells.colStarts, key) };
  };
  const drawOver = () => {
    if (!whole || !visible()) return;
    const { query, key, pins } = state.get(), pen = canvasPen(sized(over, at.left + at.width + 8, at.top + at.height + 6), family);
    const box = query === null || key === null ? null : boxOf(query, key);
    drawSelection(explorer, pen, at, box, pins.map(([q, k]) => boxOf(q, k)));
    tip.hidden = !box;
    if (!box) return;
    const [x, y, w, h] = boxOnScreen(at, box), [after, above] = [2 * x + w > at.left + at.width, 2 * y + h > at.top + at.height];
    tip.textContent = sentence();
    tip.style.cssText = `left: ${after ? x - 8 : x + w + 8}px; top: ${above ? y - 8 : y + h + 8}px; translate: ${after ? -100 : 0}% ${above ? -100 : 0}%`;
  };
  /** The selected cell in a sentence, which is shown beside it and said to screen readers. */
  const sentence = () => {
    const { query, key } = state.get(), { cells, row, col } = cellOf(query ?? 0, key ?? 0), value = cells.values[row * cells.C + col], axes = axesNow();
    return say(value === 0 ? "cell-masked" : "cell-said", {
      query: cellName(axes, cells, "query", row), key: cellName(axes, cells, "key", col), weight: weightText(value),
    });
  };

  listenToMap(explorer, frame, base, {
    layout: () => at,
    /** @param {number} unitRow @param {number} unitCol */
    select(unitRow, unitCol) {
      if (!whole) return;
      const { query, key } = explorer.axes(), found = cellOf(query.positionOf(unitRow), key.positionOf(unitCol));
      state.set({ query: found.cells.rowStarts[found.row], key: found.cells.colStarts[found.col] });
    },
    /** Move by cells. @param {number} down @param {number} across */
    move(down, across) {
      const { query, key, zoom } = state.get();
      if (!whole || query === null || key === null) return;
      const { cells, row, col } = cellOf(query, key), { query: rows, key: cols } = explorer.axes();
      const next = (/** @type {ArrayLike<number>} */ starts, /** @type {number} */ i, /** @type {number} */ by, /** @type {Axis} */ axis) => {
        const to = i + by, size = starts[1] - starts[0];
        if (to >= 0 && to < starts.length - 1) return starts[to];
        return clamp(to < 0 ? starts[0] + to * size : starts[starts.length - 1] + (to - starts.length + 1) * size, 0, axis.positionOf(axis.count - 1));
      };
      const to = [next(cells.rowStarts, row, down, rows), next(cells.colStarts, col, across, cols)];
      state.set({ query: to[0], key: to[1], zoom: showing(zoom, rows.count, cols.count, [rows.unitOf(to[0]), cols.unitOf(to[1])]) });
    },
  });
  return {
    element,
    show(cells, problem) {
      [whole, failure.hidden, failure.textContent] = [cells && pictureOf(cells), cells !== null, problem];
      refine(null);
      frame.hidden = under.hidden = cells === null;
      draw();
      askForDetail();
    },
    update(_, has) {
      if (has("zoom")) {
        if (detail && !covers(detail.cells, state.get().zoom)) refine(null);
        draw();
        askForDetail();
      } else if (has("lang", "theme", "view", "depth", "size")) draw();
      else if (has("query", "key", "pins")) drawOver();
      if (has("query", "key") && whole && base.matches(":focus")) explorer.announce(sentence());
    },
    figure(ruler) {
      if (!whole) return null;
      const { pins, zoom } = state.get(), axes = axesNow(), { scale } = detail ?? whole, { high, wide, texts } = meanings(), width = high * wide > 1 ? NARROW : figureWidth(axes, zoom);
      const map = mapFigure(explorer, ruler, axes, zoom, width, { pictures: pictures(), boxes: pins.map(([q, k]) => boxOf(q, k)) });
      return {
        width, height: map.height + 48, notes: [...texts.with(1, high * wide > 1 ? say("figure-cell", { high, wide }) : texts[1]), scaleNote(explorer, scale)],
        draw(pen) {
          map.draw(pen);
          drawLegend(explorer, pen, scale, 0, map.height + 6);
        },
      };
    },
    table: () => whole && weightsTable(explorer, whole.cells),
    destroy: () => clearTimeout(timer),
  };
}

/** Whether cells reach into the visible part. @param {Cells} cells @param {State["zoom"]} zoom */
function covers(cells, zoom) {
  if (!zoom) return false;
  const { rowStarts, colStarts, R, C } = cells, { rows, cols } = visiblePart(zoom, Infinity, Infinity);
  return rowStarts[0] < rows[1] && rowStarts[R] > rows[0] && colStarts[0] < cols[1] && colStarts[C] > cols[0];
}

/**
 * Pointer, wheel and keys of the map.
 * @param {Explorer} explorer
 * @param {HTMLElement} frame
 * @param {HTMLCanvasElement} base
 * @param {{layout(): import("./map_drawing.js").Layout, select(row: number, col: number): void, move(down: number, across: number): void}} map
 */
function listenToMap(explorer, frame, base, map) {
  const { state } = explorer;
  /** @type {Map<number, {x: number, y: number}>} */
  const pointers = new Map();
  /** @type {{x: number, y: number, moved: boolean, zoom: State["zoom"]} | null} */
  let drag = null;
  let apart = 0;
  const counts = () => { const { query, key } = explorer.axes(); return /** @type {Span} */ ([query.count, key.count]); };
  const zoomBy = (/** @type {number} */ factor, /** @type {Span | null} */ place) => place && state.set({ zoom: zoomedBy(state.get().zoom, ...counts(), factor, place) });
  const under = (/** @type {{clientX: number, clientY: number}} */ event) => unitsUnder(map.layout(), base, event);
  const hover = (/** @type {PointerEvent} */ event) => {
    const place = under(event);
    if (place) map.select(Math.floor(place[0]), Math.floor(place[1]));
  };
  const pinch = () => {
    const [a, b] = [...pointers.values()], now = Math.hypot(a.x - b.x, a.y - b.y);
    const centre = under({ clientX: (a.x + b.x) / 2, clientY: (a.y + b.y) / 2 });
    if (apart) zoomBy(apart / now, centre);
    apart = now;
  };
  /** @type {Record<string, (event: any) => void>} */
  const listeners = {
    pointerdown(event) {
      if (event.button) return;
      pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      drag = pointers.size === 1 ? { x: event.clientX, y: event.clientY, moved: false, zoom: state.get().zoom } : null;
      apart = 0;
    },
    pointermove(event) {
      if (pointers.has(event.pointerId)) pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (pointers.size === 2) { pinch(); return; }
      if (!drag) { hover(event); return; }
      const [across, down] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(across, down) < 5) return;
      if (!drag.moved) base.setPointerCapture(event.pointerId);
      drag.moved = true;
      if (drag.zoom) state.set({ zoom: movedBy(drag.zoom, ...counts(), [-down / map.layout().y, -across / map.layout().x]) });
    },
    pointerup(event) {
      pointers.delete(event.pointerId);
      if (drag && !drag.moved) { hover(event); if (under(event)) togglePin(explorer); }
      drag = null;
    },
    pointercancel(event) { pointers.delete(event.pointerId); drag = null; },
    pointerleave() {
      const last = state.get().pins.at(-1);
      if (last && !drag) state.set({ query: last[0], key: last[1] });  // a pinned cell is selected again
    },
    dblclick(event) {
      zoomBy(0.5, under(event));
    },
    wheel(event) {
      // Without focus the page scrolls; pinching on a touch pad arrives as a wheel with Ctrl.
      const place = under(event);
      if (!place || !(event.ctrlKey || base.matches(":focus"))) return;
      event.preventDefault();
      zoomBy(Math.exp(clamp(event.deltaY / 300, -1, 1)), place);
    },
    keydown(event) {
      const by = arrowsOf(event), times = event.shiftKey ? 10 : 1, far = { PageUp: -(2 ** 30), PageDown: 2 ** 30 }[/** @type {string} */ (event.key)];
      if (by) map.move(by[0] * times, by[1] * times);
      else if (far) map.move(far, 0);
      else if (event.key === "Enter") togglePin(explorer);
      else return;
      event.preventDefault();
    },
  };
  for (const [name, listener] of Object.entries(listeners)) frame.addEventListener(name, listener, { passive: false });
}
