// mount(element, source) draws a trace into an element. All state is in the view that each mount creates.

import { firstSelection, openHead, togglePin, zoomMap } from "./actions.js";
import { floats } from "./arrays.js";
import { comparePanel } from "./compare_panel.js";
import { chooser, create, fill, isolated, labelled, segments, translate } from "./dom.js";
import { effectPanel } from "./effect_panel.js";
import { exportMenu } from "./export.js";
import { generationPanel } from "./generation_panel.js";
import { imagePanel } from "./image_panel.js";
import { helpDialog, listenToKeys } from "./keyboard.js";
import { axesOf, filled, headDoes, headTitle, percent, secondText } from "./labels.js";
import { linesPanel } from "./lines_panel.js";
import { mapPanel } from "./map_panel.js";
import { modelPanel } from "./model_panel.js";
import { neighboursPanel } from "./neighbours_panel.js";
import { numbersPanel } from "./numbers_panel.js";
import { measuringPen } from "./pen.js";
import { poolAt, startsOf } from "./pooling.js";
import { scaleFor, withoutFirst } from "./scale.js";
import { sentencePanel } from "./sentence_panel.js";
import { remembering } from "./sources.js";
import { createStore, firstState, newest, VALUES } from "./state.js";

const VERSION = 1, HEAD_VIEWS = /** @type {ViewName[]} */ (VALUES.view);
/** What changes while the pointer moves: the frame does not show it. */
const FREQUENT = new Set(["query", "key", "pins", "zoom", "size"]);

/**
 * Draw the trace into the element, in place of its children. Several mounts on one page are independent.
 *
 * The element receives a "regard-change" event with the state whenever it changes. Resolves to the view: its `root`
 * element, its `state`, `update`, which changes the state, and `unmount`, which removes it.
 * @param {HTMLElement} element
 * @param {Source} source
 * @param {MountOptions} [options]
 */
export async function mount(element, source, options = {}) {
  const root = create("div.regard-explorer");
  fill(element, root);
  try {
    return await view(element, root, source, options);
  } catch (error) {
    const lang = options.lang ?? (navigator.language.startsWith("zh") ? "zh" : "en");
    fill(root, create("p.failure", { role: "alert" }, failureText(error, lang)));
    return { root, state: null, update() {}, unmount: () => root.remove() };
  }
}

/** @param {HTMLElement} element @param {HTMLElement} root @param {Source} source @param {MountOptions} options */
async function view(element, root, source, options) {
  const answer = await source.overview(), overview = /** @type {Overview} */ ({ ...answer.about, thumbnails: answer.arrays.thumbnails });
  if (overview.version !== VERSION) throw newerFile(overview.version);
  if (!overview.records?.some(({ heads }) => heads)) throw { key: "empty", words: overview.words };
  const [layer, head] = options.open ?? overview.open, start = { ...firstState(overview), layer, head, heads: [head] };
  const store = createStore({ ...start, lang: options.lang ?? start.lang, theme: options.theme ?? null, ...options.state });
  if (!overview.generation && store.get().view === "generation") store.set({ view: "map" });
  const explorer = explorerOf(source, overview, store, root, options);
  const parts = build(explorer), { panels, frame } = parts, latest = newest();
  fill(root, ...parts.children);
  /** The cells of the open head. @type {Cells | null} */
  let shown = null;
  const show = (/** @type {Cells | null} */ cells, problem = "") => {
    shown = cells;
    Object.values(panels).forEach((panel) => panel.show?.(cells, problem));
    selectFirst();
  };
  /** A cell is always selected. */
  const selectFirst = () => {
    const { query, key } = store.get(), first = shown && (query === null || key === null) ? firstSelection(explorer.record(), shown, query) : null;
    if (first) store.set({ query: first[0], key: first[1] });
  };
  const update = (/** @type {State} */ state, /** @type {Set<string>} */ changed) => {
    const has = (/** @type {string[]} */ ...names) => names.some((name) => changed.has(name));
    if ([...changed].some((name) => !FREQUENT.has(name))) frame(state, has);
    if (has("layer", "view", "merge", "zoom")) parts.pair.update(state);
    if (has("layer", "head", "scale", "merge")) latest(explorer.shownCells(state.layer, state.head), show, (error) => show(null, explorer.fail(error)));
    else selectFirst();
    for (const panel of Object.values(panels)) panel.update(state, has);
    element.dispatchEvent(new CustomEvent("regard-change", { detail: state }));
    options.onChange?.(state);
  };
  const redraw = (/** @type {string} */ name) => update(store.get(), new Set([name]));
  const media = ["(prefers-color-scheme: dark)", "print"].map((query) => matchMedia(query)), repaint = () => redraw("theme");
  media.forEach((one) => one.addEventListener("change", repaint));
  let size = "";
  const observer = new ResizeObserver(() => {
    const now = `${root.clientWidth} ${innerHeight}`;
    if (size && size !== now) requestAnimationFrame(() => redraw("size"));
    size = now;
  });
  observer.observe(root);
  listenToKeys(root, actionsOf(explorer, parts));
  const silence = store.subscribe(update);
  update(store.get(), new Set(Object.keys(store.get())));
  return {
    root, state: store, update: store.set,
    unmount: () => {
      silence();
      observer.disconnect();
      media.forEach((one) => one.removeEventListener("change", repaint));
      Object.values(panels).forEach((panel) => panel.destroy?.());
      root.remove();
    },
  };
}

// --- failures -------------------------------------------------------------------------------------------------

/** @param {number} version @returns {Failure} */
function newerFile(version) {
  return { key: "newer", text: {
    en: `This file has version ${version}, and its script reads version ${VERSION}: write it again with trace.html(path).`,
    zh: `此文件的版本是 ${version}，脚本只能读取版本 ${VERSION}：请用 trace.html(path) 重新生成。`,
  } };
}

/** A failure in one sentence. @param {any} error @param {Language} lang @param {Overview["words"]} [words] */
function failureText(error, lang, words = error?.words) {
  const text = error?.text?.[lang] ?? words?.[lang][`failure-${error?.key}`];
  return text ? filled(text, error.values ?? {}) : error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

// --- what panels share ----------------------------------------------------------------------------------------

/** @param {Source} source @param {Overview} overview @param {Store} state @param {HTMLElement} root @param {MountOptions} options @returns {Explorer} */
function explorerOf(source, overview, state, root, options) {
  const remember = /** @type {(name: string, make: () => Promise<Cells>) => Promise<Cells>} */ (remembering(48));
  /** @type {Map<string, {query: Axis, key: Axis}>} */
  const axes = new Map();
  /** @type {Map<string, string>} */
  const colours = new Map();
  const live = create("p.sr", { "aria-live": "polite" }), family = getComputedStyle(root).fontFamily || "sans-serif";
  let timer = 0;
  const record = (layer = state.get().layer) => overview.records[layer];
  const headCells = (/** @type {number} */ layer, /** @type {number} */ head) => remember(`${layer} ${head}`, async () =>
    cellsOf(record(layer), head, await source.head({ layer, head })));
  const scaleOf = (/** @type {Cells[]} */ ...all) => scaleFor(state.get().scale, all);
  /** @type {Explorer} */
  const explorer = {
    source, overview, state, root, options, record, headCells, scaleOf,
    say: (key, values = {}) => filled(overview.words[state.get().lang][key] ?? overview.words.en[key] ?? key, values),
    shownCells: (layer, head) => {
      const { merge, scale } = state.get();
      return remember(`${layer} ${head} ${merge} ${scale}`, async () => shownAs(record(layer), await headCells(layer, head), { merge, scale }));
    },
    axes: (layer = state.get().layer) => {
      const name = `${layer} ${state.get().merge}`, found = axes.get(name) ?? axesOf(overview, record(layer), mergeOf(record(layer), state.get().merge));
      axes.set(name, found);
      return found;
    },
    family, ruler: measuringPen(family),
    announce: (text) => { clearTimeout(timer); timer = setTimeout(() => { live.textContent = text; }, 150); },
    colour: (name) => {
      live.style.color = `var(--${name})`;
      const found = colours.get(name) ?? getComputedStyle(live).color;
      colours.set(name, found);
      return found;
    },
    forgetColours: () => colours.clear(),
    fail: (error) => failureText(error, state.get().lang, overview.words),
  };
  live.dataset.live = "";
  root.append(live);
  return explorer;
}

/** The merging that a record can show. @param {Attention} record @param {Merging} merge @returns {Merging} */
const mergeOf = (record, merge) => (record.labels[merge] ? merge : "tokens");

/** @param {Attention} record @param {number} head @param {Answer} answer @returns {Cells} */
function cellsOf(record, head, { about: { R, C, high, wide, norms }, arrays }) {
  return {
    R, C, rowStarts: startsOf(0, record.T, high), colStarts: startsOf(0, record.S, wide), values: floats(arrays.cells),
    attending: /** @type {Int32Array} */ (arrays.attending), firstColumn: record.firstColumn,
    first: record.first[head] ?? null, even: record.even,
    ...(arrays.norms && { norms: floats(arrays.norms), normsAre: norms }),
  };
}

/** @param {Attention} record @param {Cells} cells @param {{merge: Merging, scale: ScaleName}} state */
function shownAs(record, cells, { merge, scale }) {
  const groups = record.labels[mergeOf(record, merge)];
  const whole = cells.R === record.T && cells.C === record.S;
  const merged = whole && groups?.queryGroups && groups.keyGroups ? poolAt(cells, groups.queryGroups, groups.keyGroups) : cells;
  return withoutFirst(merged, scale);
}

// --- elements -------------------------------------------------------------------------------------------------

/** @param {Explorer} explorer */
function build(explorer) {
  const { overview, root } = explorer, live = /** @type {HTMLElement} */ (root.querySelector("[data-live]"));
  const neighbours = neighboursPanel(explorer);
  const panels = {
    model: modelPanel(explorer), generation: generationPanel(explorer), map: mapPanel(explorer, neighbours.refine), lines: linesPanel(explorer),
    sentence: sentencePanel(explorer), compare: comparePanel(explorer), numbers: numbersPanel(explorer),
    image: imagePanel(explorer), neighbours, effect: effectPanel(explorer),
  };
  const help = helpDialog(explorer), bar = topBar(explorer, panels, help.open), first = lead(explorer), heading = headHeading(explorer);
  const depth = segments(explorer, "depth", VALUES.depth), views = segments(explorer, "view", VALUES.view);
  const merge = segments(explorer, "merge", VALUES.merge, "merge", { zoom: null }), scale = chooser(explorer, "scale", overview.scales);
  const pair = pairChooser(explorer), tools = create("div.tools", views.element, create("span.gap"), merge.element, scale.element, pair.element);
  const head = create("section.card.stage", { "data-label": "depth-head" }, heading.element, tools,
    ...HEAD_VIEWS.map((name) => panels[name].element));
  const side = create("aside.card.side", { "data-label": "neighbours" }, panels.image.element, panels.neighbours.element, panels.effect.element);
  const numbers = create("section.card.numbers", { "data-label": "depth-numbers" }, panels.numbers.element);
  const model = create("section.card.model", { "data-label": "depth-model" }, panels.model.element);
  const body = create("div.body", model, head, numbers, side);
  const footer = create("footer.quiet", create("p#honest"), create("p#footer"));

  /** @param {State} now @param {Has} has */
  const frame = (now, has) => {
    root.lang = now.lang === "zh" ? "zh-CN" : "en";
    if (now.theme) root.dataset.theme = now.theme; else delete root.dataset.theme;
    if (has("theme")) explorer.forgetColours();
    [root.dataset.depth, root.dataset.view] = [now.depth, now.view];
    if (has("lang")) translate(root, explorer.say);
    const record = explorer.record();
    depth.select(now.depth);
    views.select(now.view);
    views.allow("generation", Boolean(overview.generation));
    scale.list.value = now.scale;
    merge.select(mergeOf(record, now.merge));
    merge.allow("characters", record.labels.characters !== null);
    merge.allow("words", record.labels.words !== null);
    merge.element.hidden = !record.labels.characters && !record.labels.words;
    for (const name of HEAD_VIEWS) panels[name].element.hidden = name !== now.view;
    if (has("lang", "depth", "view")) first.tell(explorer.say(`lead-${now.depth === "head" ? now.view : now.depth}`), Boolean(overview.compare) && now.depth === "head" && now.view === "compare");
    heading.update(now, has);
    bar.update();
  };
  const depths = create("nav.depths", { "data-label": "depth" }, depth.element);
  return { panels, frame, pair, help, children: [bar.element, first.element, depths, body, footer, help.element, live] };
}

/** The texts, and the sentence that explains what is shown. @param {Explorer} explorer */
function lead({ overview }) {
  const texts = overview.texts && create("p.texts", isolated(overview.texts[0]),
    overview.texts[1] ? create("span.arrow", " → ") : null, overview.texts[1] ? isolated(overview.texts[1]) : null);
  const sentence = create("p");
  return { element: create("div.lead", texts, sentence), tell: (/** @type {string} */ text, /** @type {boolean} */ named) => { sentence.textContent = text; if (texts) texts.hidden = named; } };
}

/** @param {Explorer} explorer @param {Record<string, Panel>} panels @param {() => void} openHelp */
function topBar(explorer, panels, openHelp) {
  const { state, overview } = explorer;
  const language = create("button.plain.language", { onclick: () => switchLanguage(explorer) });
  const theme = create("button.plain", { "data-tip": "theme", onclick: () => switchTheme(explorer) }, "◐");
  const help = create("button.plain", { "data-tip": "help-title", onclick: openHelp }, "?");
  const title = overview.title ? create("h1", isolated(overview.title)) : create("h1#title");
  const element = create("header.top", title, create("div.actions", exportMenu(explorer, panels), language, theme, help));
  const update = () => {
    const other = state.get().lang === "zh" ? "English" : "中文";  // each language in its own name
    language.textContent = other;
    language.lang = state.get().lang === "zh" ? "en" : "zh-CN";
  };
  return { element, update };
}

/** For two texts read together: which of them reads, and which is read. It enlarges that part. @param {Explorer} explorer */
function pairChooser(explorer) {
  const { state, overview } = explorer, list = create("select", { onchange: () => state.set({ zoom: zooms()[Number(list.value)] }) },
    create("option", { value: 0, "data-text": "pair-both" }), ...["A → A", "A → B", "B → A", "B → B"].map((name, i) => create("option", { value: i + 1 }, name)));
  const element = labelled("pair", list);
  /** @returns {State["zoom"][]} */
  const zooms = () => {
    const start = secondText(overview, explorer.record()), { query, key } = explorer.axes();
    const texts = (/** @type {Axis} */ { unitOf, count }) => /** @type {Span[]} */ ([[0, unitOf(start ?? 0)], [unitOf(start ?? 0), count]]), [rows, cols] = [texts(query), texts(key)];
    return [null, ...rows.flatMap((one) => cols.map((other) => ({ rows: one, cols: other })))];
  };
  /** @param {State} now */
  const update = ({ view, zoom }) => {
    element.hidden = secondText(overview, explorer.record()) === null || (view !== "map" && view !== "lines");
    if (!element.hidden) list.value = String(Math.max(0, zooms().findIndex((one) => JSON.stringify(one) === JSON.stringify(zoom))));
  };
  return { element, update };
}

/** The name of the head, what it does, and its numbers. @param {Explorer} explorer */
function headHeading(explorer) {
  const title = create("h2"), does = create("p.does"), notes = create("p.quiet.notes");
  const element = create("div.heading", title, does, notes);
  /** @param {State} now @param {Has} has */
  const update = (now, has) => {
    if (!has("lang", "layer", "head")) return;
    const record = explorer.record(), { say } = explorer;
    title.textContent = headTitle(explorer, now.layer, now.head);
    title.title = record.name;
    does.textContent = headDoes(explorer, record, now.head);
    const kind = say(`kind-${record.kind}`), found = [...(title.textContent.includes(kind) ? [] : [kind]), say("size", record)];
    if (record.samples > 1) found.push(say("sample", record));
    const first = record.first[now.head], noKey = record.noKey[now.head];
    if (first !== null && first !== undefined) found.push(say("first", { share: percent(first) }));
    if (noKey !== null && noKey !== undefined) found.push(say("no-key", { share: percent(noKey) }));
    notes.textContent = found.join(" · ");
  };
  return { element, update };
}

// --- actions --------------------------------------------------------------------------------------------------

/** @param {Explorer} explorer */
const switchLanguage = ({ state }) => state.set({ lang: state.get().lang === "zh" ? "en" : "zh" });

/** @param {Explorer} explorer */
function switchTheme({ state }) {
  const now = state.get().theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  state.set({ theme: now === "dark" ? "light" : "dark" });
}

/** The next of some choices, from the last to the first. @template T @param {readonly T[]} choices @param {T} now @param {number} [by] */
const nextOf = (choices, now, by = 1) => choices[(choices.indexOf(now) + by + choices.length) % choices.length];

/** What keys do. @param {Explorer} explorer @param {{help: {open(): void}}} parts @returns {Record<string, () => void>} */
function actionsOf(explorer, { help }) {
  const { state, overview } = explorer, { set, get } = state;
  const toHead = (/** @type {number} */ layer, /** @type {number} */ head) => openHead(explorer, layer, head);
  const stepHead = (/** @type {number} */ by) => toHead(get().layer, (get().head + by + explorer.record().heads) % explorer.record().heads);
  const stepLayer = (/** @type {number} */ by) => toHead((get().layer + by + overview.records.length) % overview.records.length, get().head);
  const merges = () => /** @type {Merging[]} */ (VALUES.merge).filter((name) => explorer.record().labels[name]);
  /** @type {Record<string, () => void>} */
  const actions = {
    help: help.open, language: () => switchLanguage(explorer), theme: () => switchTheme(explorer),
    "head-before": () => stepHead(-1), "head-after": () => stepHead(1), "layer-before": () => stepLayer(-1), "layer-after": () => stepLayer(1),
    scale: () => set({ scale: nextOf(overview.scales, get().scale) }),
    merge: () => set({ merge: nextOf(merges(), mergeOf(explorer.record(), get().merge)), zoom: null }),
    direction: () => set({ direction: get().direction === "looks" ? "seen" : "looks" }),
    pin: () => togglePin(explorer), unpin: () => set(get().pins.length ? { pins: [] } : { zoom: null }),
    "zoom-in": () => zoomMap(explorer, 0.5), "zoom-out": () => zoomMap(explorer, 2), "zoom-all": () => set({ zoom: null }),
  };
  for (const depth of /** @type {Depth[]} */ (VALUES.depth)) actions[depth] = () => set({ depth });
  for (const view of HEAD_VIEWS) actions[view] = () => view === "generation" && !overview.generation ? undefined : set({ depth: "head", view });
  return actions;
}
