// The map of one head drawn with a pen: cells, labels, the line of the prompt, the selection and the pins.

import { hatch, NARROW, striped, WIDE } from "./figures.js";
import { downwards, unitsOf } from "./labels.js";
import { colourOf, inkOn } from "./scale.js";
import { visiblePart } from "./zoom.js";

const SMALLEST = 9, LARGEST = 13, LEAST_NAMED = 6, WIDEST_LABEL = 150, MOST_MEASURED = 2000;
/** Cells of this size have a faint line between them. */
const LINED = 12, FAINT = 0.5;

/** With `ink`, numbers are written in this colour, whatever their cell's. @typedef {{cells: Cells, scale: Scale, pixels: HTMLCanvasElement, ink?: string, hatched?: {box: Box, colour: string}[]}} Picture */
/** Rows and columns in units. @typedef {{rows: Span, cols: Span}} Box */
/** `beside` and `above` are the space of labels. @typedef {{left: number, top: number, beside: number, above: number, width: number, height: number, x: number, y: number, rows: Span, cols: Span}} Layout */

/**
 * The box of the cells inside of a given width; `x` and `y` are the sizes of one unit, `rows` and `cols` what is visible.
 * @param {Pen} pen
 * @param {Axes} axes
 * @param {State["zoom"]} zoom
 * @param {number} wide
 * @param {number} high  the most that the cells may take
 * @returns {Layout}
 */
export function mapLayout(pen, { query, key }, zoom, wide, high) {
  const { rows, cols } = visiblePart(zoom, query.count, key.count);
  /** Of a long text only what is visible is measured. @param {Axis} axis @param {Span} span */
  const widest = (axis, span) => {
    const [start, stop] = axis.count > MOST_MEASURED ? span : [0, axis.count];
    let found = 0;
    for (let i = Math.floor(start); i < Math.min(stop, start + MOST_MEASURED); i++) found = Math.max(found, pen.width(axis.label(i).slice(0, 60), LARGEST));
    return Math.min(found, WIDEST_LABEL, 0.3 * wide);
  };
  const left = 14 + (query.labels && LEAST_NAMED * (rows[1] - rows[0]) <= high ? widest(query, rows) : Math.max(34, pen.width(placeOf(query, query.count - 1), 11))), across = Math.max(40, wide - left - 8);
  const cell = Math.min(56, across / Math.max(1, key.count), high / Math.max(1, query.count));
  // A map with few rows or columns stays readable: its cells are not square then.
  const width = Math.min(across, Math.max(cell * key.count, Math.min(across, 34 * key.count)));
  const height = Math.min(high, Math.max(cell * query.count, Math.min(28 * query.count, high)));
  const square = Math.min(width / Math.max(1, key.count), height / Math.max(1, query.count));
  const close = Math.max(key.count, query.count) <= 3 * Math.min(key.count, query.count);
  const [w, h] = close ? [square * key.count, square * query.count] : [width, height];
  const x = w / Math.max(1, cols[1] - cols[0]), y = h / Math.max(1, rows[1] - rows[0]);
  const top = 16 + (key.labels && x >= LEAST_NAMED ? columnLabels(pen, key, cols, x, Math.min(WIDEST_LABEL, 0.3 * wide)).high : LARGEST);
  return { left, top, beside: left - 10, above: top - 10, width: w, height: h, x, y, rows, cols };
}

/**
 * How the columns are labelled: font size, every how many of them, and whether long ones are rotated.
 * @param {Pen} pen
 * @param {Axis} axis
 * @param {Span} span
 * @param {number} unit
 * @param {number} most
 */
function columnLabels(pen, axis, [start, stop], unit, most) {
  const size = Math.max(SMALLEST, Math.min(LARGEST, unit - 2)), first = Math.floor(start), last = Math.min(axis.count, Math.ceil(stop), first + MOST_MEASURED);
  let widest = 0, single = true;
  for (let i = first; i < last; i++) {
    const label = axis.label(i).slice(0, 60);
    if ([...label].length > 1) single = false;
    widest = Math.max(widest, pen.width(label, size));
  }
  const turned = !single && widest + 6 > unit;
  return { size, turned, step: Math.max(1, Math.ceil((turned ? size + 1 : widest + 2) / unit)), high: turned ? Math.min(most, widest) : size };
}

/** A layout with space for the names of the axes. @param {Pen} pen @param {Axes} axes @param {State["zoom"]} zoom @param {number} wide @param {number} high @returns {Layout} */
export function titledLayout(pen, axes, zoom, wide, high) {
  const at = mapLayout(pen, axes, zoom, wide - AXIS, high);
  return { ...at, left: at.left + AXIS, top: at.top + AXIS };
}

/** The names of the axes, above the columns and beside the rows. @param {Explorer} explorer @param {Pen} pen @param {Layout} at */
export function drawTitles({ say, colour }, pen, { left, top, width, height }) {
  const style = /** @type {const} */ ({ size: 12, fill: colour("quiet"), align: "center" });
  pen.text(say("key"), left + width / 2, 8, style);
  pen.text(say("query"), 8, top + height / 2, { ...style, turned: true });
}

/** Positions at round numbers that do not touch each other. @param {Span} span @param {number} unit @param {number} needed */
function roundPositions([start, stop], unit, needed) {
  const least = needed / unit, power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = Math.max(1, (/** @type {number} */ ([1, 2, 5, 10].find((times) => times * power >= least)) || 10) * power), found = [];
  for (let at = Math.ceil(start / step) * step; at < stop; at += step) found.push(at);
  return found;
}

/**
 * The map without selection.
 * @param {Explorer} explorer
 * @param {Pen} pen
 * @param {Layout} at
 * @param {Axes} axes
 * @param {Picture[]} pictures  drawn one over the other, each in place of what is below it; the last is the finest
 */
export function drawMap(explorer, pen, at, axes, pictures) {
  const { left, top, width, height } = at;
  striped(explorer, pen, left, top, width, height);
  const [first] = pictures;
  pen.clip(left, top, width, height, () => pictures.forEach((picture) => {
    drawPicture(explorer, pen, at, axes, picture, picture !== first);
    for (const { box, colour } of picture.hatched ?? []) {
      const [x, y, wide, high] = boxOnScreen(at, box);
      pen.rect(x, y, wide, high, explorer.colour("card"));
      pen.clip(x, y, wide, high, () => hatch(pen, x, y, wide, high, colour, 6));
    }
  }));
  drawRowLabels(explorer, pen, at, axes.query);
  drawColumnLabels(explorer, pen, at, axes.key);
  drawPrompt(explorer, pen, at, axes.query);
}

/** @param {Explorer} explorer @param {Pen} pen @param {Layout} at @param {Axes} axes @param {Picture} picture @param {boolean} covers  whether its masked cells hide what is below */
function drawPicture(explorer, pen, at, { query, key }, { cells, scale, pixels, ink }, covers) {
  if (!cells.R || !cells.C) return;
  const place = (/** @type {ArrayLike<number>} */ starts, /** @type {Axis} */ axis) => {
    const count = starts.length - 1, first = axis.unitOf(starts[0]), end = axis.unitOf(Math.max(starts[0], starts[count] - 1)) + 1;
    return { first, end, size: axis.unitOf(starts[1] - 1) + 1 - first || 1 };
  };
  const down = place(cells.rowStarts, query), across = place(cells.colStarts, key);
  // The last cell may be cut off: it is drawn as large as the others and clipped at the end of the map.
  const x = at.left + (across.first - at.cols[0]) * at.x, y = at.top + (down.first - at.rows[0]) * at.y;
  const width = (across.end - across.first) * at.x, height = (down.end - down.first) * at.y;
  const drawn = () => pen.image(pixels, [0, 0, cells.C, cells.R], [x, y, cells.C * across.size * at.x, cells.R * down.size * at.y]);
  if (covers) striped(explorer, pen, x, y, width, height);
  const [w, h] = [across.size * at.x, down.size * at.y];
  pen.clip(x, y, width, height, () => {
    drawn();
    if (Math.min(w, h) < LINED) return;
    const card = explorer.colour("card");
    for (let r = 1; r < cells.R; r++) pen.line([x, y + r * h, x + width, y + r * h], card, 1, FAINT);
    for (let c = 1; c < cells.C; c++) pen.line([x + c * w, y, x + c * w, y + height], card, 1, FAINT);
  });
  if (w < 34 || h < 18) return;
  const decimals = scale.ceiling <= 0.1 ? 3 : 2;
  for (let r = 0; r < cells.R; r++) {
    for (let c = 0; c < cells.C; c++) {
      const value = cells.values[r * cells.C + c], colour = colourOf(explorer.overview, scale, value);
      if (!colour || Math.abs(value) < 0.5 * 10 ** -decimals) continue;
      const text = Number.isNaN(value) ? "NaN" : value.toFixed(decimals).replace("-", "−");
      pen.text(text, x + (c + 0.5) * w, y + (r + 0.5) * h, { size: 11, fill: ink ?? inkOn(colour), align: "center" });
    }
  }
}

/** @param {Explorer} explorer @param {Pen} pen @param {Layout} at @param {Axis} axis */
function drawRowLabels(explorer, pen, at, axis) {
  const fill = explorer.colour("ink"), { left, top, rows, y } = at, size = Math.max(SMALLEST, Math.min(LARGEST, y - 2));
  const named = axis.labels && y >= LEAST_NAMED;
  const units = named ? everyFew(rows, axis.count, Math.ceil((size + 1) / y)) : roundPositions(rows, y, 40);
  for (const unit of units) {
    const place = top + (unit + 0.5 - rows[0]) * y;
    if (place < top || place > top + at.height) continue;
    pen.text(named ? axis.label(unit) : placeOf(axis, unit), left - 7, place, { size: named ? size : 11, fill, align: "right", most: at.beside });
  }
}

/** The position of a unit without its label. @param {Axis} axis @param {number} unit */
const placeOf = (axis, unit) => axis.name(unit).replace(/^.*\((.*)\)$/, "$1");

/** Every so many units of a span. @param {Span} span @param {number} count @param {number} step */
function everyFew([start, stop], count, step) {
  const found = [];
  for (let unit = Math.ceil(Math.floor(start) / step) * step; unit < Math.min(count, stop); unit += step) found.push(unit);
  return found;
}

/** @param {Explorer} explorer @param {Pen} pen @param {Layout} at @param {Axis} axis */
function drawColumnLabels(explorer, pen, at, axis) {
  const fill = explorer.colour("ink"), { left, top, cols, x } = at, named = axis.labels && x >= LEAST_NAMED;
  const style = named ? columnLabels(pen, axis, cols, x, at.above - 2) : { size: 11, turned: false, step: 1 };
  const units = named ? everyFew(cols, axis.count, style.step) : roundPositions(cols, x, 56);
  for (const unit of units) {
    const place = left + (unit + 0.5 - cols[0]) * x, label = named ? axis.label(unit) : placeOf(axis, unit);
    if (place < left || place > left + at.width) continue;
    const characters = style.turned ? downwards(label) : null;
    if (!style.turned) {
      pen.text(label, place, top - 6 - style.size / 2, { size: style.size, fill, align: "center" });
    } else if (characters) {
      const most = Math.max(1, Math.floor(at.above / style.size)), kept = characters.length > most ? [...characters.slice(0, most - 1), "⋮"] : characters;
      kept.forEach((one, i) => pen.text(one, place, top - 6 + (i - kept.length + 0.5) * style.size, { size: style.size, fill, align: "center" }));
    } else {
      pen.text(label, place, top - 6, { size: style.size, fill, turned: true, most: at.above });
    }
  }
}

/** The line between the prompt and the generated text. @param {Explorer} explorer @param {Pen} pen @param {Layout} at @param {Axis} axis */
function drawPrompt(explorer, pen, at, axis) {
  const { prompt } = explorer.record();
  if (prompt === null || prompt === undefined) return;
  const y = at.top + (axis.unitOf(prompt) - at.rows[0]) * at.y;
  if (y > at.top && y < at.top + at.height) pen.line([at.left - 6, y, at.left + at.width, y], explorer.colour("mark"), 1.5, 1, [6, 4]);
}

/** A cell in units. @param {Axes} axes @param {Cells} cells @param {number} row @param {number} col @returns {Box} */
export const cellBox = ({ query, key }, cells, row, col) => ({ rows: unitsOf(query, cells.rowStarts, row), cols: unitsOf(key, cells.colStarts, col) });

/** Left, top, width and height in pixels. @param {Layout} at @param {Box} box @returns {[number, number, number, number]} */
export const boxOnScreen = (at, { rows, cols }) => [
  at.left + (cols[0] - at.cols[0]) * at.x, at.top + (rows[0] - at.rows[0]) * at.y,
  Math.max(3, (cols[1] - cols[0]) * at.x), Math.max(3, (rows[1] - rows[0]) * at.y),
];

/** Row and column under a point, in units; null beside the cells. @param {Layout} at @param {Element} element @param {{clientX: number, clientY: number}} event @returns {Span | null} */
export function unitsUnder(at, element, { clientX, clientY }) {
  const box = element.getBoundingClientRect(), x = clientX - box.left - at.left, y = clientY - box.top - at.top;
  return x < 0 || y < 0 || x >= at.width || y >= at.height ? null : [at.rows[0] + y / at.y, at.cols[0] + x / at.x];
}

/**
 * The selected row and column, and the pins.
 * @param {Explorer} explorer
 * @param {Pen} pen
 * @param {Layout} at
 * @param {Box | null} selected
 * @param {Box[]} pins
 */
export function drawSelection(explorer, pen, at, selected, pins) {
  pen.clip(at.left - 1, at.top - 1, at.width + 2, at.height + 2, () => {
    const mark = explorer.colour("mark"), thick = at.x < 6 ? 1 : 2;
    if (selected) {
      const [x, y, width, height] = boxOnScreen(at, selected);
      pen.rect(at.left, y, at.width, height, null, mark, thick / 2);
      pen.rect(x, at.top, width, at.height, null, mark, thick / 2);
      pen.rect(x, y, width, height, null, "#fff", thick + 1.5);
      pen.rect(x, y, width, height, null, mark, thick);
    }
    pins.forEach((pin, i) => {
      const [x, y, width, height] = boxOnScreen(at, pin), middle = /** @type {Span} */ ([x + width / 2, y + height / 2]);
      pen.rect(x, y, width, height, null, "#fff", 3.5);
      pen.rect(x, y, width, height, null, "#111", 1.5);
      const [across, down] = at.x < 30 || at.y < 30 ? middle : [x + 7, y + 7];
      pen.rect(across - 7, down - 7, 14, 14, "#111", "#fff", 1);
      pen.text(String(i + 1), across, down + 0.5, { size: 10, fill: "#fff", align: "center", weight: 600 });
    });
  });
}

/** The smallest cell of a saved map of tokens, the highest saved map by its width, and the space of an axis title. */
const READABLE = 9, TALLEST = 1.25, AXIS = 18;

/** The width of a saved map: that of one column of a paper, if its labels can be read then. @param {Axes} axes @param {State["zoom"]} zoom */
export function figureWidth({ query, key }, zoom) {
  const { rows, cols } = visiblePart(zoom, query.count, key.count);
  const longest = Math.max(query.labels ? rows[1] - rows[0] : 0, key.labels ? cols[1] - cols[0] : 0);
  return longest * READABLE > 0.8 * NARROW ? WIDE : NARROW;
}

/**
 * A map with the names of its axes, for a file.
 * @param {Explorer} explorer @param {Pen} ruler @param {Axes} axes @param {State["zoom"]} zoom @param {number} wide
 * @param {{pictures: Picture[], boxes?: Box[]}} shown
 * @returns {{at: Layout, height: number, draw(pen: Pen): void}}
 */
export function mapFigure(explorer, ruler, axes, zoom, wide, { pictures, boxes = [] }) {
  const at = titledLayout(ruler, axes, zoom, wide, TALLEST * wide);
  return {
    at, height: at.top + at.height + 6,
    draw(pen) {
      drawTitles(explorer, pen, at);
      drawMap(explorer, pen, at, axes, pictures);
      drawSelection(explorer, pen, at, null, boxes);
    },
  };
}
