// The map of one head on a canvas: layout, cells, labels and legend; on the page or as a picture to save.

const MOST_LABELS = 72, SMALLEST_FONT = 9, LARGEST_FONT = 12, MARGIN = 14;
/** Words in these scripts are written downwards if they are too long; other words are rotated. */
const UPRIGHT = /^[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\u3000-\u303f\uff00-\uffef]+$/u;

const cssValue = (view, name) => getComputedStyle(view.root).getPropertyValue(name).trim();
const fontOf = (view, size, weight = 400) => `${weight} ${size}px ${getComputedStyle(view.root).fontFamily}`;
const widthOf = (context, label) => context.measureText(label).width;

// --- layout -------------------------------------------------------------------------------------------------

/** The tokens along one side, or null if positions are shown instead. */
const tokensOf = (view, list, count) => (list === null || count > MOST_LABELS ? null : view.data.labels[list]);

/** The token read and, if known, the token written. */
function rowLabel(view, record, row) {
  const { labels } = view.data, read = labels[record.queries][row];
  const writes = record.written !== null && !record.silent.includes(row);
  return writes ? `${read} → ${labels[record.written][row]}` : read;
}

/** How the labels of one side are written: font size, every how many of them, and whether long ones are rotated. */
function labelStyle(view, context, labels, cell, above) {
  const size = Math.max(SMALLEST_FONT, Math.min(LARGEST_FONT, cell - 1));
  const single = labels.every((label) => [...label].length === 1);
  context.font = fontOf(view, size);
  const widest = Math.max(...labels.map((label) => widthOf(context, label))), gap = single ? 0.5 : 4;
  const turned = above && !single && widest + gap > cell;
  return { size, turned, step: Math.ceil((above && !turned ? widest + gap : size + 0.5) / cell) };
}

/** The height of a label above its column. */
function heightOf(context, label, { size, turned }) {
  const count = [...label].length;
  return !turned || count === 1 ? size : UPRIGHT.test(label) ? count * size : widthOf(context, label);
}

/** Space for labels, the size of a cell in CSS pixels, and the style of the labels. */
function layoutOf(view, record) {
  const wide = view.ui.middle.clientWidth, context = document.createElement("canvas").getContext("2d");
  const rows = tokensOf(view, record.queries, record.R)?.map((_, row) => rowLabel(view, record, row));
  const columns = tokensOf(view, record.keys, record.C);
  context.font = fontOf(view, LARGEST_FONT);
  const longest = (labels) => Math.max(...labels.map((label) => widthOf(context, label)));
  const left = rows?.length ? Math.min(0.3 * wide, 12 + longest(rows)) : 44;
  const most = Math.min(wide - left - 1, 900), longer = Math.max(record.R, record.C, 1);
  const cell = Math.min(64, most / longer), flat = 4 * Math.min(record.R, record.C) < longer;
  const least = flat ? Math.max(cell, 28 / Math.min(record.R, record.C)) : cell;  // a single row stays visible
  const [width, height] = record.C >= record.R ? [cell, least] : [least, cell];
  const beside = rows?.length ? labelStyle(view, context, rows, height, false) : null;
  const above = columns?.length ? labelStyle(view, context, columns, width, true) : null;
  const highest = above ? Math.max(...columns.map((label) => heightOf(context, label, above))) : LARGEST_FONT;
  return { left, top: Math.min(0.3 * wide, 12 + highest), width, height, rows, columns, beside, above };
}

/** The width and height of the map with its labels. */
const extentOf = (record, at) => [Math.max(120, at.left + record.C * at.width + 1), at.top + record.R * at.height + 1];

// --- drawing ------------------------------------------------------------------------------------------------

function drawMap(view) {
  const record = currentRecord(view), canvas = view.ui.map, at = (view.layout = layoutOf(view, record));
  const ratio = window.devicePixelRatio || 1, [across, down] = extentOf(record, at);
  [canvas.width, canvas.height] = [Math.round(across * ratio), Math.round(down * ratio)];
  [canvas.style.width, canvas.style.height] = [`${across}px`, `${down}px`];
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = cssValue(view, "--ground");
  context.fillRect(0, 0, across, down);
  if (!view.cells.length) return;
  drawCells(view, context, record, at);
  drawSelection(view, context, record, at);
}

/** The cells with their labels, without the selection. */
function drawCells(view, context, record, at) {
  context.fillStyle = cssValue(view, "--hidden");
  context.fillRect(at.left, at.top, record.C * at.width, record.R * at.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(view.image, at.left, at.top, record.C * at.width, record.R * at.height);
  drawNumbers(view, context, record, at);
  drawRowLabels(view, context, record, at);
  drawColumnLabels(view, context, record, at);
  drawPrompt(view, context, record, at);
}

/** The line between the prompt and the generated text. */
function drawPrompt(view, context, record, at) {
  if (record.prompt === null) return;
  const y = at.top + (record.prompt / record.high) * at.height;
  context.setLineDash([6, 4]);
  [context.strokeStyle, context.lineWidth] = [cssValue(view, "--mark"), 1];
  context.beginPath();
  context.moveTo(at.left, y);
  context.lineTo(at.left + record.C * at.width, y);
  context.stroke();
  context.setLineDash([]);
}

function drawNumbers(view, context, record, at) {
  if (at.width < 34 || at.height < 18) return;
  context.font = fontOf(view, 11);
  [context.textAlign, context.textBaseline] = ["center", "middle"];
  view.cells.forEach((value, i) => {
    if (value === 0) return;
    context.fillStyle = colourOf(view, value, view.table).text;
    const [row, column] = [Math.floor(i / record.C), i % record.C];
    const text = Number.isNaN(value) ? "NaN" : value.toFixed(2);
    context.fillText(text, at.left + (column + 0.5) * at.width, at.top + (row + 0.5) * at.height);
  });
}

/** Round positions that do not touch each other, each with its place in cells. */
function positions(count, size, cell, start) {
  const least = 52 * size / cell, power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, [1, 2, 5, 10].find((times) => times * power >= least) * power);
  const round = Math.ceil(start / step) * step, stop = start + count * size, first = round < stop ? round : start;
  const place = (position) => [`${position}`, (position - start + 0.5) / size];
  return Array.from({ length: Math.ceil((stop - first) / step) }, (_, i) => place(first + i * step));
}

/** As many tokens as fit, each with its place in cells; positions if there are no tokens. */
function placedLabels(labels, style, count, size, cell, start) {
  if (!labels) return positions(count, size, cell, start);
  return labels.map((label, i) => [label, i + 0.5]).filter((_, i) => i % style.step === 0);
}

function drawRowLabels(view, context, record, at) {
  context.fillStyle = cssValue(view, "--ink");
  context.font = fontOf(view, at.beside?.size ?? 11);
  [context.textAlign, context.textBaseline] = ["right", "middle"];
  placedLabels(at.rows, at.beside, record.R, record.high, at.height, originOf(record)[0]).forEach(([label, place]) => {
    context.fillText(label, at.left - 5, at.top + place * at.height, at.left - 6);
  });
}

function drawColumnLabels(view, context, record, at) {
  const style = at.above ?? { size: 11, turned: false };
  context.fillStyle = cssValue(view, "--ink");
  context.font = fontOf(view, style.size);
  context.textBaseline = "middle";
  placedLabels(at.columns, style, record.C, record.wide, at.width, originOf(record)[1]).forEach(([label, place]) => {
    context.save();
    context.translate(at.left + place * at.width, at.top - 6);
    drawLabelAbove(context, label, style, at.top - 8);
    context.restore();
  });
}

/** One label above its column: single characters stay upright, other labels are rotated all together or not at all. */
function drawLabelAbove(context, label, { size, turned }, available) {
  const characters = [...label], most = Math.max(1, Math.floor(available / size));
  context.textAlign = "center";
  if (!turned || characters.length === 1) {
    context.fillText(label, 0, -size / 2);
  } else if (UPRIGHT.test(label)) {
    const kept = characters.length > most ? [...characters.slice(0, most - 1), "⋮"] : characters;
    kept.forEach((character, i) => context.fillText(character, 0, (i - kept.length + 0.5) * size));
  } else {
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(label, 0, 0, available);
  }
}

/** Frames around the selected row and column. */
function drawSelection(view, context, { R, C }, at) {
  context.strokeStyle = cssValue(view, "--mark");
  context.lineWidth = Math.min(at.width, at.height) < 6 ? 1 : 2;
  context.strokeRect(at.left, at.top + view.state.row * at.height, C * at.width, at.height);
  context.strokeRect(at.left + view.state.column * at.width, at.top, at.width, R * at.height);
}

// --- legend -------------------------------------------------------------------------------------------------

/** The entries of the legend: a weight and its colour. */
function legendOf(view) {
  return view.table.legend.map(([text, number]) => {
    const colour = view.data.colours[number];
    return { text, background: `rgb(${colour.rgb})`, ink: colour.text };
  });
}

function drawLegend(view) {
  const { legend, threshold } = view.ui;
  legend.replaceChildren(...legendOf(view).map(({ text, background, ink }) => {
    const entry = create("span", {}, text);
    [entry.style.background, entry.style.color] = [background, ink];
    return entry;
  }));
  threshold.textContent = view.table.threshold === null ? "" : say(view, "bend", { bend: view.table.threshold });
}

// --- picture to save ------------------------------------------------------------------------------------------

/** The map with title and legend at twice the resolution of the page, without the selection. */
function pictureToSave(view) {
  const record = currentRecord(view), at = view.layout, [across, down] = extentOf(record, at), wide = Math.max(across, 360);
  const { texts } = view.data, canvas = document.createElement("canvas"), context = canvas.getContext("2d");
  context.font = fontOf(view, 14, 600);
  const title = [titleOf(view, record), headName(view), ...(record.part ? [sizeOf(view, record)] : [])].join(" · ");
  const titles = [...(texts ? [texts.join(" → ")] : []), title];
  const lines = titles.flatMap((text) => wrapped(context, text, wide)), top = MARGIN + 20 * lines.length + 8;
  const ratio = 2 * (window.devicePixelRatio || 1), [width, height] = [wide + 2 * MARGIN, top + down + 58 + MARGIN];
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  context.scale(ratio, ratio);
  context.fillStyle = cssValue(view, "--ground");
  context.fillRect(0, 0, width, height);
  [context.fillStyle, context.font, context.textBaseline] = [cssValue(view, "--ink"), fontOf(view, 14, 600), "middle"];
  lines.forEach((line, i) => context.fillText(line, MARGIN, MARGIN + 20 * (i + 0.5)));
  context.translate(MARGIN, top);
  if (view.cells.length) drawCells(view, context, record, at);
  context.translate(0, down + 14);
  drawLegendOn(view, context, wide);
  return canvas;
}

function drawLegendOn(view, context, wide) {
  const entries = legendOf(view), width = Math.min(90, wide / entries.length);
  [context.font, context.textAlign, context.textBaseline] = [fontOf(view, 11), "center", "middle"];
  entries.forEach(({ text, background, ink }, i) => {
    context.fillStyle = background;
    context.fillRect(i * width, 0, width, 20);
    context.fillStyle = ink;
    context.fillText(text, (i + 0.5) * width, 10, width - 4);
  });
  [context.fillStyle, context.textAlign] = [cssValue(view, "--quiet"), "left"];
  context.fillText([say(view, "weight"), say(view, view.state.scale)].join(" · "), 0, 34, wide);
}

/** The text in lines that fit, broken at spaces, or anywhere in Chinese. */
function wrapped(context, text, wide) {
  const lines = [""];
  for (const piece of text.match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+/gu) ?? []) {
    if (lines.at(-1) && widthOf(context, lines.at(-1) + piece.trimEnd()) > wide) lines.push("");
    lines[lines.length - 1] += piece;
  }
  return lines;
}
