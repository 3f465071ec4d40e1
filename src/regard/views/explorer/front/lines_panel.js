// Lines between the words that read and the words they read from, one colour for each head.

import { togglePin } from "./actions.js";
import { arrowsOf, button, clamp, create, labelled, segments } from "./dom.js";
import { digits, drawSamples, NARROW, tableOf, WIDE } from "./figures.js";
import { colourOfHead, headChips, headSamples, openHeads } from "./heads.js";
import { cellLabel, downwards, partText, startsOn } from "./labels.js";
import { canvasPen, sized } from "./pen.js";
import { cellAt, times } from "./pooling.js";
import { shortWeight } from "./scale.js";
import { newest, VALUES } from "./state.js";
import { visiblePart } from "./zoom.js";

const MOST_WORDS = 96, MOST_LINES = 500, LEAST_WEIGHT = 0.01, PITCH = 21, SIZE = 13, ACROSS = 26;

/** @param {Explorer} explorer @returns {Panel} */
export function linesPanel(explorer) {
  const { state, family, ruler, say } = explorer, turn = segments(explorer, "lines", VALUES.lines), latest = newest();
  const range = create("input", { type: "range", min: -3, max: 0, step: 0.05, "data-label": "threshold", oninput: () => state.set({ threshold: 10 ** Number(range.value) }) });
  const told = create("p.quiet"), zoomOut = button("zoom-all", () => state.set({ zoom: null })), chips = headChips(explorer);
  const canvas = create("canvas.lines", { tabindex: 0, role: "application", "data-label": "lines-label", onkeydown: move, onpointermove: point, onclick: pin });
  const frame = create("div.lines-frame", canvas);
  const element = create("div.lines-panel",
    create("div.tools", turn.element, labelled("threshold", range), zoomOut), chips.element, told, frame);
  /** @type {OpenHead[]} */
  let drawn = [];
  /** @type {ReturnType<typeof place> | null} */
  let at = null;
  let stale = true;
  const visible = () => state.get().view === "lines" && state.get().depth === "head";

  const load = () => {
    latest(openHeads(explorer), (found) => {
      [drawn, stale] = [found, false];
      draw();
    });
  };
  /** Which words are shown and where they stand. @param {number} room @param {Pen} pen */
  const place = (room, pen) => {
    const { cells } = drawn[0], { query, key, lines, zoom } = state.get(), upright = lines === "vertical", axes = explorer.axes(), seen = visiblePart(zoom, axes.query.count, axes.key.count);
    const part = (/** @type {Axis} */ axis, /** @type {Span} */ [from, to], /** @type {ArrayLike<number>} */ starts, /** @type {number | null} */ position) => {
      const low = cellAt(starts, axis.positionOf(Math.floor(from))), high = cellAt(starts, axis.positionOf(Math.ceil(to)) - 1) + 1;
      const first = clamp(cellAt(starts, position ?? 0) - MOST_WORDS / 2, low, Math.max(low, high - MOST_WORDS));
      return { first, stop: Math.min(high, first + MOST_WORDS), cut: high - low > MOST_WORDS };
    };
    const rows = part(axes.query, seen.rows, cells.rowStarts, query), cols = part(axes.key, seen.cols, cells.colStarts, key);
    const names = (/** @type {Side} */ side, /** @type {{first: number, stop: number}} */ { first, stop }) => times(stop - first, (i) => cellLabel(explorer.axes(), cells, side, first + i));
    const labels = [names("query", rows), names("key", cols)], widest = labels.map((all) => Math.min(upright ? 170 : 110, Math.max(20, ...all.map((one) => pen.width(one, SIZE, 650)))));
    const single = labels.every((all) => all.every((one) => [...one].length <= 2)), longest = Math.max(...labels.map((all) => all.length));
    if (upright) {
      const width = Math.max(180, Math.min(760, room - 6));
      const most = Math.min(widest[0], 0.34 * width), other = Math.min(widest[1], 0.34 * width);
      return { rows, cols, seen, labels, upright, single, width, height: longest * PITCH + 8, from: most + 12, to: width - other - 12, pitch: PITCH, most: [most, other] };
    }
    const pitch = single ? ACROSS : Math.max(20, Math.min(64, room / longest)), flat = single || Math.max(...widest) + 6 <= pitch;
    const [above, below] = labels.map((all, i) => (flat ? 24 : 18 + Math.max(...all.map((one) => { const stack = downwards(one); return stack ? SIZE * stack.length : Math.min(widest[i], pen.width(one, SIZE)); }))));
    return { rows, cols, seen, labels, upright, single: flat, width: longest * pitch + 8, height: above + below + 240, from: above, to: above + 240, pitch, most: widest };
  };
  const draw = () => {
    if (!visible() || !drawn.length) return;
    at = place(element.clientWidth || 600, ruler);
    paint(canvasPen(sized(canvas, at.width, at.height), family), at);
  };

  /** The smallest weight that is drawn: the chosen one, or such that of the words shown not too many lines are. @param {ReturnType<typeof place>} box */
  const threshold = ({ rows, cols }) => state.get().threshold ?? drawn.reduce((least, { cells: { values, C } }) => {
    const all = times(rows.stop - rows.first, (r) => Array.from(values.subarray((rows.first + r) * C + cols.first, (rows.first + r) * C + cols.stop))).flat();
    const visible = Float32Array.from(all.filter((value) => value > 0)).sort(), most = Math.floor(MOST_LINES / drawn.length);
    return Math.max(least, visible.at(-most) ?? 0, Math.min(LEAST_WEIGHT, (visible.at(-1) ?? 0) / 10));
  }, 0);

  /** @param {Pen} pen @param {ReturnType<typeof place>} box */
  const paint = (pen, box) => {
    const { query, key, pins, direction } = state.get(), least = threshold(box), { cells } = drawn[0];
    const chosenRows = new Set(pins.map(([q]) => cellAt(cells.rowStarts, q))), chosenCols = new Set(pins.map(([, k]) => cellAt(cells.colStarts, k)));
    if (query !== null && direction === "looks") chosenRows.add(cellAt(cells.rowStarts, query));
    if (key !== null && direction === "seen") chosenCols.add(cellAt(cells.colStarts, key));
    const [chosen, part] = direction === "looks" ? [chosenRows, box.rows] : [chosenCols, box.cols], all = ![...chosen].some((i) => i >= part.first && i < part.stop);
    const strong = (/** @type {number} */ r, /** @type {number} */ c) => all || chosen.has(direction === "looks" ? r : c);
    const point = (/** @type {number} */ i, /** @type {number} */ end) => /** @type {Span} */ (box.upright ? [end, 4 + (i + 0.5) * box.pitch] : [4 + (i + 0.5) * box.pitch, end]);
    /** Every cell of the words shown. @param {(head: number, r: number, c: number, value: number, scale: Scale) => void} see */
    const visit = (see) => {
      for (const { head, cells: { values, C }, scale } of drawn) for (let r = box.rows.first; r < box.rows.stop; r++) for (let c = box.cols.first; c < box.cols.stop; c++) see(head, r, c, values[r * C + c], scale);
    };
    let count = 0, top = 0;
    visit((_, r, c, value) => { if (value > top && strong(r, c)) top = value; });
    // The words that are selected have their own lines where those of others are stronger.
    const own = all || state.get().threshold !== null ? least : Math.min(least, top / 10);
    for (const pass of [false, true]) visit((head, r, c, value, scale) => {
      if (!(value >= (pass ? own : least)) || strong(r, c) !== pass) return;
      count++;
      const level = scale.level(value), colour = drawn.length > 1 ? colourOfHead(head) : explorer.colour("accent");
      pen.curve(point(r - box.rows.first, box.from), point(c - box.cols.first, box.to), box.upright, colour, pass ? 0.6 + 4 * level : 0.6 + 1.2 * level, pass ? 0.15 + 0.85 * level : 0.06 + 0.4 * level * level);
    });
    words(pen, box, 0, chosenRows, point);
    words(pen, box, 1, chosenCols, point);
    range.value = String(Math.log10(Math.max(0.001, least)));
    const { zoom } = state.get(), lines = say(box.rows.cut || box.cols.cut ? "lines-part" : "lines-count", { count, weight: shortWeight(least), shown: MOST_WORDS }) + (own < least ? say("lines-own", { weight: shortWeight(own) }) : "");
    told.textContent = zoom ? `${lines} · ${partText(explorer, explorer.axes(), box.seen)}` : lines;
    zoomOut.hidden = !zoom;
  };
  /** @param {Pen} pen @param {ReturnType<typeof place>} box @param {0 | 1} side @param {Set<number>} chosen @param {(i: number, end: number) => Span} point */
  const words = (pen, box, side, chosen, point) => {
    const ink = explorer.colour("ink"), mark = explorer.colour("mark"), { first } = side ? box.cols : box.rows;
    box.labels[side].forEach((label, i) => {
      const [x, y] = point(i, side ? box.to : box.from), stack = box.upright || box.single ? null : downwards(label), fill = chosen.has(first + i) ? mark : ink, weight = chosen.has(first + i) ? 650 : 400, style = { size: SIZE, fill, weight };
      if (box.upright) pen.text(label, side ? x + 8 : x - 8, y, { ...style, align: side ? "left" : "right", most: box.most[side] });
      else if (box.single) pen.text(label, x, side ? y + 12 : y - 12, { ...style, align: "center" });
      else if (stack) stack.forEach((one, j, all) => pen.text(one, x, side ? y + 16 + j * SIZE : y - 16 - (all.length - 1 - j) * SIZE, { ...style, align: "center" }));
      else pen.text(label, x, side ? y + 8 : y - 8, { ...style, turned: true, align: side ? "right" : "left", most: box.most[side] });
    });
  };

  /** The word under the pointer. @param {MouseEvent} event @returns {{side: Side, index: number} | null} */
  const under = (event) => {
    if (!at) return null;
    const bounds = canvas.getBoundingClientRect(), [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const [along, over] = at.upright ? [y, x] : [x, y], side = over < (at.from + at.to) / 2 ? "query" : "key", { first, stop } = side === "query" ? at.rows : at.cols;
    const index = first + Math.floor((along - 4) / at.pitch);
    return index >= first && index < stop ? { side, index } : null;
  };
  /** @param {{side: Side, index: number}} found */
  const select = ({ side, index }) => {
    const { query, key } = state.get();
    state.set({ query: query ?? 0, key: key ?? 0, [side]: startsOn(drawn[0].cells, side)[index], direction: side === "query" ? "looks" : "seen" });
  };
  /** @param {MouseEvent} event */
  function point(event) {
    const found = under(event);
    if (found) select(found);
  }
  /** @param {MouseEvent} event */
  function pin(event) {
    const found = under(event);
    if (found) togglePin(explorer, found.side);
  }
  /** @param {KeyboardEvent} event */
  function move(event) {
    if (!drawn.length) return;
    const by = arrowsOf(event), { cells } = drawn[0], { query, key, direction, pins } = state.get(), side = direction === "looks" ? "query" : "key", starts = startsOn(cells, side);
    if (by) {
      const index = clamp(cellAt(starts, state.get()[side] ?? 0) + by[0] + by[1], 0, starts.length - 2);
      select({ side, index });
      explorer.announce(say(side === "query" ? "sentence-looks" : "sentence-seen", { word: cellLabel(explorer.axes(), cells, side, index) }));
    } else if (event.key === "Enter" && query !== null && key !== null) {
      state.set({ pins: [...pins, [query, key]] });
      event.preventDefault();
    }
  }
  return {
    element,
    update(now, has) {
      if (has("layer", "head", "heads", "scale", "merge")) stale = true;
      turn.select(now.lines);
      if (!visible()) return;
      chips.update(has);
      if (stale) load();
      else if (has("query", "key", "pins", "zoom", "direction", "lines", "threshold", "lang", "theme", "view", "depth", "size")) draw();
    },
    figure(pen) {
      if (!drawn.length || stale) return null;
      const narrow = place(NARROW + 6, pen), isNarrow = narrow.width <= NARROW && Math.max(...narrow.labels.flat().map((one) => pen.width(one, SIZE))) < 0.34 * NARROW;
      const width = isNarrow ? NARROW : WIDE, box = isNarrow ? narrow : place(WIDE + 6, pen), scale = Math.min(1, width / box.width), [query, key] = [say("query"), say("key")];
      const left = (width - scale * box.width) / 2, top = 20, high = scale * box.height + top + (box.upright ? 0 : 18);
      const colours = headSamples(explorer, pen, drawn, width);
      return {
        width, height: high + colours.height + 6, notes: [told.textContent, say("figure-lines")],
        draw(to) {
          const style = { size: 12, fill: explorer.colour("quiet") };
          if (box.upright) { to.text(query, box.from - 12, 8, { ...style, align: "right" }); to.text(key, box.to + 12, 8, style); }
          else { to.text(query, 0, 8, style); to.text(key, 0, high - 9, style); }
          to.moved(left, top, () => paint(to, box), scale);
          drawSamples(explorer, to, colours, 0, high + 6);
        },
      };
    },
    table() {
      if (!drawn.length || stale || !at) return null;
      const axes = explorer.axes(), least = threshold(at), rows = /** @type {(string | number | null)[][]} */ ([]);
      for (const { head, cells } of drawn) cells.values.forEach((value, i) => {
        if (value >= least) rows.push([head, cellLabel(axes, cells, "query", Math.floor(i / cells.C)), cellLabel(axes, cells, "key", i % cells.C), digits(value)]);
      });
      return tableOf(explorer, ["head", "query", "key", "weight"], rows, { threshold: least });
    },
  };
}
