// The visible part of a map, in units of its axes.

/** @typedef {{rows: Span, cols: Span}} Zoom */
const FEWEST = 4;

/** The visible rows and columns. @param {Zoom | null} zoom @param {number} rows @param {number} cols @returns {Zoom} */
export function visiblePart(zoom, rows, cols) {
  return { rows: within(zoom?.rows ?? [0, rows], rows), cols: within(zoom?.cols ?? [0, cols], cols) };
}

/** A span moved and shortened so that it fits. @param {Span} span @param {number} count @returns {Span} */
function within([start, stop], count) {
  const long = Math.min(count, Math.max(Math.min(FEWEST, count), stop - start));
  const first = Math.max(0, Math.min(count - long, start));
  return [first, first + long];
}

/** null where everything is visible. @param {Zoom} part @param {number} rows @param {number} cols @returns {Zoom | null} */
function orAll(part, rows, cols) {
  const whole = part.rows[1] - part.rows[0] > rows - 0.01 && part.cols[1] - part.cols[0] > cols - 0.01;
  return whole ? null : part;
}

/**
 * Another zoom around a point, which stays where it is.
 * @param {Zoom | null} zoom
 * @param {number} rows
 * @param {number} cols
 * @param {number} factor  below 1 enlarges
 * @param {Span} [centre]  row and column; the middle where it is absent
 */
export function zoomedBy(zoom, rows, cols, factor, centre) {
  const part = visiblePart(zoom, rows, cols);
  const scaled = (/** @type {Span} */ [start, stop], /** @type {number} */ count, /** @type {number | undefined} */ at) => {
    const middle = at === undefined || at < start || at > stop ? (start + stop) / 2 : at;
    const long = Math.min(count, Math.max(Math.min(FEWEST, count), (stop - start) * factor)), share = (middle - start) / (stop - start || 1);
    return within([middle - share * long, middle + (1 - share) * long], count);
  };
  return orAll({ rows: scaled(part.rows, rows, centre?.[0]), cols: scaled(part.cols, cols, centre?.[1]) }, rows, cols);
}

/** @param {Zoom | null} zoom @param {number} rows @param {number} cols @param {Span} by */
export function movedBy(zoom, rows, cols, [down, across]) {
  const part = visiblePart(zoom, rows, cols);
  return orAll({
    rows: within([part.rows[0] + down, part.rows[1] + down], rows), cols: within([part.cols[0] + across, part.cols[1] + across], cols),
  }, rows, cols);
}

/** The zoom moved as little as possible so that a cell is visible. @param {Zoom | null} zoom @param {number} rows @param {number} cols @param {Span} cell */
export function showing(zoom, rows, cols, [row, col]) {
  if (!zoom) return null;
  const part = visiblePart(zoom, rows, cols);
  const by = (/** @type {Span} */ [start, stop], /** @type {number} */ at) => (at < start ? at - start : at + 1 > stop ? at + 1 - stop : 0);
  return movedBy(zoom, rows, cols, [by(part.rows, row), by(part.cols, col)]);
}
