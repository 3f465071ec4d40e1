// The map of one head: where its cells stand, its labels and its colours; on the page, or as a picture to keep.
"use strict";

const MOST_LABELS = 72, SMALLEST = 9, LARGEST = 12, MARGIN = 14;
/** Words of these scripts are written downwards where they are too long, never laid on their side. */
const UPRIGHT = /^[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\u3000-\u303f\uff00-\uffef]+$/u;

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const font = (size, weight = 400) => `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
const widthOf = (context, label) => context.measureText(label).width;

// --- where things stand -------------------------------------------------------------------------------------

/** The tokens along one side, if they are to be written; else positions are. */
const tokensOf = (list, count) => (list === null || count > MOST_LABELS ? null : data.labels[list]);

/** What a row has read and, where known, what it writes. */
function rowLabel(record, row) {
  const read = data.labels[record.queries][row], wrote = record.written !== null && !record.silent.includes(row);
  return wrote ? `${read} → ${data.labels[record.written][row]}` : read;
}

/** How the labels of one side are written: how large, every how many of them, and whether the long ones are turned. */
function planOf(context, labels, cell, above) {
  const size = Math.max(SMALLEST, Math.min(LARGEST, cell - 1)), single = labels.every((label) => [...label].length === 1);
  context.font = font(size);
  const widest = Math.max(...labels.map((label) => widthOf(context, label))), gap = single ? 0.5 : 4;
  const turned = above && !single && widest + gap > cell;
  return { size, turned, step: Math.ceil((above && !turned ? widest + gap : size + 0.5) / cell) };
}

/** How high a label over a column is. */
function heightOf(context, label, plan) {
  const count = [...label].length;
  return !plan.turned || count === 1 ? plan.size : UPRIGHT.test(label) ? count * plan.size : widthOf(context, label);
}

/** Room for labels, the size of a cell in CSS pixels, and how labels are written in that room. */
function layout(record) {
  const wide = $("middle").clientWidth, context = document.createElement("canvas").getContext("2d");
  const rows = tokensOf(record.queries, record.R)?.map((_, row) => rowLabel(record, row)), columns = tokensOf(record.keys, record.C);
  context.font = font(LARGEST);
  const longest = (labels) => Math.max(...labels.map((label) => widthOf(context, label)));
  const left = rows?.length ? Math.min(0.3 * wide, 12 + longest(rows)) : 44;
  const most = Math.min(wide - left - 1, 900), longer = Math.max(record.R, record.C, 1);
  const cell = Math.min(64, most / longer), flat = 4 * Math.min(record.R, record.C) < longer;
  const least = flat ? Math.max(cell, 28 / Math.min(record.R, record.C)) : cell;  // one row is still to be seen
  const [width, height] = record.C >= record.R ? [cell, least] : [least, cell];
  const beside = rows?.length ? planOf(context, rows, height, false) : null;
  const above = columns?.length ? planOf(context, columns, width, true) : null;
  const highest = above ? Math.max(...columns.map((label) => heightOf(context, label, above))) : LARGEST;
  return { left, top: Math.min(0.3 * wide, 12 + highest), width, height, rows, columns, beside, above };
}

/** How wide and how high the map is with its labels. */
const extentOf = (record, at) => [Math.max(120, at.left + record.C * at.width + 1), at.top + record.R * at.height + 1];

// --- drawing ------------------------------------------------------------------------------------------------

function drawMap() {
  const record = current(), canvas = $("map"), at = (state.layout = layout(record));
  const ratio = window.devicePixelRatio || 1, [across, down] = extentOf(record, at);
  [canvas.width, canvas.height] = [Math.round(across * ratio), Math.round(down * ratio)];
  [canvas.style.width, canvas.style.height] = [`${across}px`, `${down}px`];
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = style("--ground");
  context.fillRect(0, 0, across, down);
  if (!state.cells.length) return;
  drawCells(context, record, at);
  drawMark(context, at);
}

/** The cells with their labels, as they are whoever points at one. */
function drawCells(context, record, at) {
  context.fillStyle = style("--hidden");
  context.fillRect(at.left, at.top, record.C * at.width, record.R * at.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(state.image, at.left, at.top, record.C * at.width, record.R * at.height);
  drawNumbers(context, record, at);
  drawRowLabels(context, record, at);
  drawColumnLabels(context, record, at);
  drawPrompt(context, record, at);
}

/** A line where reading ended and writing began. */
function drawPrompt(context, record, at) {
  if (record.prompt === null) return;
  const y = at.top + (record.prompt / record.high) * at.height;
  context.setLineDash([6, 4]);
  [context.strokeStyle, context.lineWidth] = [style("--mark"), 1];
  context.beginPath();
  context.moveTo(at.left, y);
  context.lineTo(at.left + record.C * at.width, y);
  context.stroke();
  context.setLineDash([]);
}

function drawNumbers(context, record, at) {
  if (at.width < 34 || at.height < 18) return;
  context.font = font(11);
  [context.textAlign, context.textBaseline] = ["center", "middle"];
  state.cells.forEach((value, i) => {
    if (value === 0) return;
    context.fillStyle = inkOn(colourOf(value, state.colours));
    const [row, column] = [Math.floor(i / record.C), i % record.C];
    const text = Number.isNaN(value) ? "NaN" : value.toFixed(2);
    context.fillText(text, at.left + (column + 0.5) * at.width, at.top + (row + 0.5) * at.height);
  });
}

/** Positions at round numbers, so far apart that none touches the next: each with its place in cells. */
function positions(count, size, cell, start) {
  const least = 52 * size / cell, power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, [1, 2, 5, 10].find((times) => times * power >= least) * power);
  const round = Math.ceil(start / step) * step, stop = start + count * size, first = round < stop ? round : start;
  const place = (position) => [`${position}`, (position - start + 0.5) / size];
  return Array.from({ length: Math.ceil((stop - first) / step) }, (_, i) => place(first + i * step));
}

/** Tokens where they can be read, as many as have room; else positions. */
function placed(labels, plan, count, size, cell, start) {
  if (!labels) return positions(count, size, cell, start);
  return labels.map((label, i) => [label, i + 0.5]).filter((_, i) => i % plan.step === 0);
}

function drawRowLabels(context, record, at) {
  context.fillStyle = style("--ink");
  context.font = font(at.beside?.size ?? 11);
  [context.textAlign, context.textBaseline] = ["right", "middle"];
  placed(at.rows, at.beside, record.R, record.high, at.height, originOf(record)[0]).forEach(([label, place]) => {
    context.fillText(label, at.left - 5, at.top + place * at.height, at.left - 6);
  });
}

function drawColumnLabels(context, record, at) {
  const plan = at.above ?? { size: 11, turned: false };
  context.fillStyle = style("--ink");
  context.font = font(plan.size);
  context.textBaseline = "middle";
  placed(at.columns, plan, record.C, record.wide, at.width, originOf(record)[1]).forEach(([label, place]) => {
    context.save();
    context.translate(at.left + place * at.width, at.top - 6);
    writeAbove(context, label, plan, at.top - 8);
    context.restore();
  });
}

/** One label over its column: single characters stand, words of our alphabet are turned all together or not at all. */
function writeAbove(context, label, { size, turned }, room) {
  const signs = [...label], most = Math.max(1, Math.floor(room / size));
  context.textAlign = "center";
  if (!turned || signs.length === 1) {
    context.fillText(label, 0, -size / 2);
  } else if (UPRIGHT.test(label)) {
    const kept = signs.length > most ? [...signs.slice(0, most - 1), "⋮"] : signs;
    kept.forEach((sign, i) => context.fillText(sign, 0, (i - kept.length + 0.5) * size));
  } else {
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(label, 0, 0, room);
  }
}

function drawMark(context, at) {
  const { R, C } = current();
  context.strokeStyle = style("--mark");
  context.lineWidth = Math.min(at.width, at.height) < 6 ? 1 : 2;
  context.strokeRect(at.left, at.top + state.row * at.height, C * at.width, at.height);
  context.strokeRect(at.left + state.column * at.width, at.top, at.width, R * at.height);
}

// --- the colours --------------------------------------------------------------------------------------------

/** What a few colours stand for: one more where those behind the bend hold much. */
function swatches() {
  return [0, 0.25, 0.5, 0.75, ...(state.colours.bend === null ? [] : [0.875]), 1].map((step) => {
    const weight = weightAt(step, state.colours), colour = colourOf(weight, state.colours);
    const sign = step === 0 && state.scale === "log" ? "≤ " : "";
    return { text: sign + (weight ? weight.toPrecision(2) : "0"), colour: `rgb(${colour})`, ink: inkOn(colour) };
  });
}

function drawLegend() {
  $("legend").replaceChildren(...swatches().map(({ text, colour, ink }) => {
    const one = document.createElement("span");
    one.textContent = text;
    [one.style.background, one.style.color] = [colour, ink];
    return one;
  }));
  const { bend } = state.colours;
  $("bend").textContent = bend === null ? "" : say("bend", { bend: bend.toPrecision(2) });
}

// --- a picture to keep ----------------------------------------------------------------------------------------

/** The map under its title and over its colours, twice as fine as on the page, nothing pointed at. */
function pictureToKeep() {
  const record = current(), at = state.layout, [across, down] = extentOf(record, at), wide = Math.max(across, 360);
  const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
  context.font = font(14, 600);
  const titles = [...(data.texts ? [data.texts.join(" → ")] : []), [titleOf(record), headOf(), ...(record.part ? [sizeOf(record)] : [])].join(" · ")];
  const lines = titles.flatMap((title) => wrapped(context, title, wide)), top = MARGIN + 20 * lines.length + 8;
  const ratio = 2 * (window.devicePixelRatio || 1), [width, height] = [wide + 2 * MARGIN, top + down + 58 + MARGIN];
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  context.scale(ratio, ratio);
  context.fillStyle = style("--ground");
  context.fillRect(0, 0, width, height);
  [context.fillStyle, context.font, context.textBaseline] = [style("--ink"), font(14, 600), "middle"];
  lines.forEach((line, i) => context.fillText(line, MARGIN, MARGIN + 20 * (i + 0.5)));
  context.translate(MARGIN, top);
  if (state.cells.length) drawCells(context, record, at);
  context.translate(0, down + 14);
  drawSwatches(context, wide);
  return canvas;
}

function drawSwatches(context, wide) {
  const all = swatches(), width = Math.min(90, wide / all.length);
  [context.font, context.textAlign, context.textBaseline] = [font(11), "center", "middle"];
  all.forEach(({ text, colour, ink }, i) => {
    context.fillStyle = colour;
    context.fillRect(i * width, 0, width, 20);
    context.fillStyle = ink;
    context.fillText(text, (i + 0.5) * width, 10, width - 4);
  });
  [context.fillStyle, context.textAlign] = [style("--quiet"), "left"];
  context.fillText([say("weight"), say(state.scale)].join(" · "), 0, 34, wide);
}

/** The text in lines that fit, broken at spaces, or anywhere where there are none. */
function wrapped(context, text, wide) {
  const lines = [""];
  for (const piece of text.match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+/gu) ?? []) {
    if (lines.at(-1) && widthOf(context, lines.at(-1) + piece.trimEnd()) > wide) lines.push("");
    lines[lines.length - 1] += piece;
  }
  return lines;
}
