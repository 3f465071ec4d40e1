// mount(element, payload) draws a trace into an element. page.py makes the payload; see page_payload there.
// All state is in the view that each mount creates. Texts are set by textContent, never as markup.

/** @typedef {{name: string, kind: string, heads: number, T: number, S: number, R: number, C: number, high: number,
 *   wide: number, part: {rows: string, cols: string, T: number, S: number, top: number, left: number}|null,
 *   queries: number|null, keys: number|null, written: number|null, silent: number[], rows: string,
 *   firstColumn: number, tables: Object<string, number[]>, first: (number|null)[], noKey: (number|null)[],
 *   sample: number, samples: number, merged: string|null, prompt: number|null, titles: Object<string, string>}} Attention */
/** @typedef {{boundaries: number[], legend: [string, number][], threshold: string|null}} Table */
/** @typedef {{lang: string, scale: string, scales: string[], open: [number, number], texts: string[]|null,
 *   words: Object<string, Object<string, string>>, colours: {rgb: number[], text: string}[],
 *   nan: {rgb: number[], text: string}, tables: Table[], labels: string[][], records: Attention[],
 *   maps: string|Uint8Array}} Payload */

const MOST_TEXT = 1500, TOP_KEYS = 8;

/**
 * Draw the trace into the element, in place of its children. Several mounts on one page are independent.
 *
 * The element receives a "regard-change" event with the layer, head and language whenever one of them changes.
 * Resolves to the view: its `root` element, its `state`, and `unmount`, which removes it.
 * @param {Element} element
 * @param {Payload} payload  not modified; `maps` as base64 or as bytes
 */
async function mount(element, payload) {
  const maps = await unpacked(payload.maps), [layer, head] = payload.open;
  const state = { lang: payload.lang, scale: payload.scale, layer, head, row: 0, column: 0, pinned: false };
  const view = { element, data: payload, maps, offsets: offsetsOf(payload.records), state, ...build() };
  element.replaceChildren(view.root);
  fillChoices(view);
  const stop = listen(view);
  draw(view);
  selectLastQuery(view);
  return Object.assign(view, { unmount: () => { stop(); view.root.remove(); } });
}

/** The half floats of all heads, as bytes. */
async function unpacked(maps) {
  const packed = typeof maps === "string" ? Uint8Array.from(atob(maps), (sign) => sign.charCodeAt(0)) : maps;
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new DataView(await new Response(stream).arrayBuffer());
}

/** Where the cells of each record begin. */
function offsetsOf(records) {
  let offset = 0;
  return records.map(({ heads, R, C }) => (offset += heads * R * C) - heads * R * C);
}

/** Select the last query, which has the most visible keys, and its largest weight. */
function selectLastQuery(view) {
  const { R, C } = currentRecord(view), line = view.cells.subarray((R - 1) * C, R * C);
  if (R && C) select(view, R - 1, line.reduce((best, value, i) => (value > line[best] ? i : best), 0), false);
}

// --- elements -----------------------------------------------------------------------------------------------

function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The elements of a view. `ui` holds those that change. */
function build() {
  const ui = {
    texts: create("p", { class: "texts" }),
    layer: create("select", { class: "layer" }),
    scale: create("select", { class: "scale" }),
    language: create("button", { type: "button" }),
    theme: create("button", { type: "button", "data-text": "theme" }),
    save: create("button", { type: "button", "data-text": "picture" }),
    about: create("p", { class: "about" }),
    heads: create("section", { class: "heads", role: "radiogroup", "data-label": "heads" }),
    map: create("canvas", { class: "map", tabindex: "0", role: "application", "data-label": "map" }),
    legend: create("div", { class: "legend", "aria-hidden": "true" }),
    threshold: create("p", { class: "threshold" }),
    cell: create("p", { class: "cell", "aria-live": "polite" }),
    topKeys: create("ol", { class: "top-keys" }),
    topQueries: create("ol", { class: "top-queries" }),
    text: create("p", { class: "text" }),
  };
  const choice = (name, list) => create("label", {}, create("span", { "data-text": name }), " ", list);
  const choices = [choice("layer", ui.layer), choice("scale", ui.scale), ui.language, ui.theme, ui.save];
  const title = create("h1", { "data-text": "title" }), frame = create("div", { class: "frame" }, ui.map);
  ui.middle = create("section", { class: "middle" }, frame, ui.legend, ui.threshold, ui.cell);
  const [keys, queries] = ["looks", "seen"].map((name) => create("h2", { "data-text": name }));
  const side = create("section", { class: "side" }, keys, ui.topKeys, queries, ui.topQueries);
  ui.reading = create("section", { class: "reading" }, create("h2", { "data-text": "text" }), ui.text);
  const footer = create("footer", {}, create("p", { "data-text": "keys" }), create("p", { "data-text": "honest" }));
  const root = create("div", { class: "regard-trace", tabindex: "-1" },
    create("header", {}, title, ui.texts, create("div", { class: "choices" }, ...choices), ui.about),
    create("div", { class: "columns" }, ui.heads, ui.middle, side), ui.reading, footer);
  return { root, ui };
}

// --- texts --------------------------------------------------------------------------------------------------

function say(view, key, values = {}) {
  return view.data.words[view.state.lang][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

const currentRecord = (view) => view.data.records[view.state.layer];
const titleOf = (view, record) => record.titles[view.state.lang];
const originOf = (record) => [record.part?.top ?? 0, record.part?.left ?? 0];
const sizeOf = (view, record) => (record.part ? say(view, "part", record.part) : say(view, "size", record));
const headName = (view, head = view.state.head) => `${say(view, "head")} ${head}`;

/** The name of a row or column: its token and its positions. */
function nameOf(view, side, at) {
  const record = currentRecord(view), [top, left] = originOf(record), [list, size, length, start] = side === "query"
    ? [record.queries, record.high, record.T, top] : [record.keys, record.wide, record.S, left];
  const first = start + at * size, last = start + Math.min(length, (at + 1) * size) - 1;
  const place = last > first ? `${first}–${last}` : `${first}`;
  if (list === null) return place;
  return `${side === "query" ? rowLabel(view, record, at) : view.data.labels[list][at]} (${place})`;
}

// --- drawing ------------------------------------------------------------------------------------------------

function draw(view) {
  const { root, ui, data, state } = view, record = currentRecord(view);
  root.lang = state.lang === "zh" ? "zh-CN" : "en";
  root.querySelectorAll("[data-text]").forEach((one) => { one.textContent = say(view, one.dataset.text); });
  root.querySelectorAll("[data-label]").forEach((one) => one.setAttribute("aria-label", say(view, one.dataset.label)));
  ui.language.textContent = state.lang === "zh" ? "English" : "中文";  // each language in its own name
  [...ui.scale.options].forEach((option) => { option.textContent = say(view, option.value); });
  [...ui.layer.options].forEach((option) => { option.textContent = titleOf(view, data.records[option.value]); });
  [ui.layer.value, ui.layer.title, ui.about.title] = [state.layer, record.name, record.name];
  [ui.texts.hidden, ui.texts.textContent] = [data.texts === null, data.texts?.join(" → ") ?? ""];
  ui.scale.value = state.scale;
  const focused = ui.heads.contains(root.getRootNode().activeElement);
  drawHeads(view, record);
  drawHead(view);
  if (focused) ui.heads.children[state.head]?.focus();  // the buttons are new
}

function drawHead(view) {
  const { element, ui, state } = view, record = currentRecord(view);
  state.head = Math.min(state.head, Math.max(0, record.heads - 1));
  [...ui.heads.children].forEach((one, head) => {
    one.setAttribute("aria-checked", head === state.head);
    one.tabIndex = head === state.head ? 0 : -1;
  });
  view.cells = record.heads ? cellsOf(view, state.layer, state.head) : new Float32Array(0);
  view.table = tableOf(view, state.layer, state.head);
  view.image = pixelsOf(view, record, view.cells, view.table);
  ui.about.textContent = [...recordNotes(view, record), ...headNotes(view, record)].join(" · ");
  drawLegend(view);
  drawMap(view);
  drawCell(view);
  const { layer, head, lang } = state;
  element.dispatchEvent(new CustomEvent("regard-change", { detail: { layer, head, lang } }));
}

function recordNotes(view, record) {
  const title = titleOf(view, record), kind = say(view, `kind-${record.kind}`);
  const notes = [title, ...(title === record.name ? [kind] : []), sizeOf(view, record)];
  if (record.samples > 1) notes.push(say(view, "sample", { sample: record.sample, count: record.samples }));
  if (record.high > 1 || record.wide > 1) notes.push(say(view, "cell", record));
  notes.push(say(view, `rows-${record.rows}`));
  if (record.merged) notes.push(say(view, `merged-${record.merged}`));
  if (record.prompt !== null) notes.push(say(view, "prompt", record));
  return notes;
}

function headNotes(view, record) {
  const percent = (share) => ({ share: Math.round(100 * share) });
  const notes = [headName(view)], first = record.first[view.state.head], noKey = record.noKey[view.state.head];
  if (first != null) notes.push(say(view, "first", percent(first)));
  if (noKey != null) notes.push(say(view, "no-key", percent(noKey)));
  return notes;
}

/** The cells as a canvas with one pixel per cell; masked cells are transparent. */
function pixelsOf(view, record, cells, table) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.max(1, record.C), Math.max(1, record.R)];
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  cells.forEach((value, i) => {
    if (value !== 0) image.data.set([...colourOf(view, value, table).rgb, 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

function drawHeads(view, record) {
  const { layer } = view.state;
  view.ui.heads.replaceChildren(...Array.from({ length: record.heads }, (_, head) => {
    const small = create("canvas", { width: 96, height: 96 }), context = small.getContext("2d");
    const image = pixelsOf(view, record, cellsOf(view, layer, head), tableOf(view, layer, head));
    context.fillStyle = cssValue(view, "--hidden");
    context.fillRect(0, 0, 96, 96);
    context.imageSmoothingEnabled = Math.max(record.R, record.C) > 96;
    context.drawImage(image, 0, 0, 96, 96);
    const button = create("button", { type: "button", role: "radio" }, small, headName(view, head));
    button.onclick = () => { view.state.head = head; drawHead(view); };
    return button;
  }));
}

/** The selected cell in words, the largest weights of its row and column, and the text coloured by its query. */
function drawCell(view) {
  const { ui, cells, state } = view, record = currentRecord(view), { R, C } = record;
  state.row = Math.min(state.row, Math.max(0, R - 1));
  state.column = Math.min(state.column, Math.max(0, C - 1));
  if (!cells.length) {
    ui.cell.textContent = say(view, "nothing", record);
    [ui.topKeys, ui.topQueries, ui.text].forEach((one) => one.replaceChildren());
    return;
  }
  const line = cells.subarray(state.row * C, (state.row + 1) * C), value = line[state.column];
  const number = value === 0 ? say(view, "none") : `${say(view, "weight")} ${Number.isNaN(value) ? "NaN" : numberText(value)}`;
  const masked = line.every((one) => one === 0) && state.scale !== "hidden" && state.scale !== "renormalised";
  const [query, key] = [nameOf(view, "query", state.row), nameOf(view, "key", state.column)];
  const cell = [`${say(view, "query")} ${query} → ${say(view, "key")} ${key}`, number];
  ui.cell.textContent = [...cell, ...(masked ? [say(view, "blind")] : [])].join(" · ");
  const column = Array.from({ length: R }, (_, row) => cells[row * C + state.column]);
  drawTop(view, ui.topKeys, "key", [...line]);
  drawTop(view, ui.topQueries, "query", column);
  drawText(view, record, line);
}

function drawTop(view, list, side, values) {
  const order = values.map((value, i) => [value, i]).filter(([value]) => value > 0).sort((a, b) => b[0] - a[0]);
  list.replaceChildren(...order.slice(0, TOP_KEYS).map(([value, i]) => {
    const bar = create("i");
    bar.style.width = `${100 * Math.min(1, value)}%`;
    return create("li", {}, bar, create("b", {}, nameOf(view, side, i)), create("span", {}, numberText(value)));
  }));
}

function drawText(view, record, line) {
  const { ui, data, state } = view, fits = record.keys !== null && record.wide === 1 && record.C <= MOST_TEXT;
  ui.reading.hidden = !fits;
  if (!fits) return;
  const [top, left] = originOf(record), own = record.keys === record.queries && top === left;
  ui.text.replaceChildren(...data.labels[record.keys].map((label, i) => {
    const token = create("span", {}, label), value = line[i];
    if (value !== 0) {
      const { rgb, text } = colourOf(view, value, view.table);
      [token.style.background, token.style.color, token.title] = [`rgb(${rgb})`, text, numberText(value)];
    }
    if (own && i === state.row) token.className = "selected";
    token.onclick = () => { if (own) select(view, i, state.column, true); };
    return token;
  }));
}

// --- selection ----------------------------------------------------------------------------------------------

function fillChoices({ ui, data }) {
  ui.layer.replaceChildren(...data.records.map((record, i) => new Option(record.name, i)));
  data.records.forEach((record, i) => { ui.layer.options[i].title = record.name; });
  ui.scale.replaceChildren(...data.scales.map((scale) => new Option(scale, scale)));
}

function select(view, row, column, pinned) {
  const { R, C } = currentRecord(view);
  view.state.row = Math.max(0, Math.min(R - 1, row));
  view.state.column = Math.max(0, Math.min(C - 1, column));
  view.state.pinned = pinned;
  drawMap(view);
  drawCell(view);
}

/** Go to another layer or head, from the last to the first and back. */
function step(view, what, count, by) {
  if (!count) return;
  view.state[what] = (view.state[what] + by + count) % count;
  if (what === "layer") draw(view); else drawHead(view);
}

function cellUnder(view, event) {
  const box = view.ui.map.getBoundingClientRect(), at = view.layout, { R, C } = currentRecord(view);
  const column = Math.floor((event.clientX - box.left - at.left) / at.width);
  const row = Math.floor((event.clientY - box.top - at.top) / at.height);
  return row >= 0 && column >= 0 && row < R && column < C ? [row, column] : null;
}

/** Connect the controls. Returns a function that disconnects what is outside of the view. */
function listen(view) {
  const { root, ui, state } = view, dark = matchMedia("(prefers-color-scheme: dark)"), redraw = () => draw(view);
  ui.layer.onchange = (event) => { state.layer = Number(event.target.value); draw(view); };
  ui.scale.onchange = (event) => { state.scale = event.target.value; draw(view); };
  ui.language.onclick = () => switchLanguage(view);
  ui.theme.onclick = () => switchTheme(view);
  ui.save.onclick = () => savePicture(view);
  ui.map.onmousemove = (event) => {
    const at = cellUnder(view, event);
    if (at && !state.pinned) select(view, ...at, false);
  };
  ui.map.onclick = (event) => { const at = cellUnder(view, event); if (at) select(view, ...at, !state.pinned); };
  root.onkeydown = (event) => onKey(view, event);
  dark.addEventListener("change", redraw);
  // In the next frame: drawing the map changes the size of the observed element.
  const observer = new ResizeObserver(() => requestAnimationFrame(() => drawMap(view)));
  observer.observe(ui.middle);
  return () => { observer.disconnect(); dark.removeEventListener("change", redraw); };
}

function switchLanguage(view) {
  view.state.lang = view.state.lang === "zh" ? "en" : "zh";
  draw(view);
}

function switchTheme(view) {
  const { dataset } = view.root, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = (dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  draw(view);
}

function switchScale(view) {
  const { scales } = view.data;
  view.state.scale = scales[(scales.indexOf(view.state.scale) + 1) % scales.length];
  draw(view);
}

function savePicture(view) {
  pictureToSave(view).toBlob((blob) => {
    const link = document.createElement("a");
    [link.href, link.download] = [URL.createObjectURL(blob), `${currentRecord(view).name}.${view.state.head}.png`];
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

function onKey(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  const { ui, data, state } = view, { row, column } = state, { R, C, heads } = currentRecord(view);
  const by = event.shiftKey ? 10 : 1, layers = data.records.length;
  const moves = {
    ArrowUp: [row - by, column], ArrowDown: [row + by, column], ArrowLeft: [row, column - by],
    ArrowRight: [row, column + by], Home: [row, 0], End: [row, C - 1], PageUp: [0, column], PageDown: [R - 1, column],
  };
  const actions = {
    "[": () => step(view, "head", heads, -1), "]": () => step(view, "head", heads, 1),
    ",": () => step(view, "layer", layers, -1), ".": () => step(view, "layer", layers, 1),
    c: () => switchScale(view), l: () => switchLanguage(view), d: () => switchTheme(view),
    Escape: () => { state.pinned = false; },
  };
  const steps = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 };
  if (event.key in moves && event.target === ui.map) select(view, ...moves[event.key], true);
  else if (event.key in steps && event.target.parentElement === ui.heads) {
    step(view, "head", heads, steps[event.key]);
    ui.heads.children[state.head].focus();
  }
  else if (event.key in actions) actions[event.key]();
  else return;
  event.preventDefault();
}

export { mount };
