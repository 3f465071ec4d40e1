// A generation step by step: what each written token read, what else was likely, and the alignment with a source text.

import { fillBars } from "./bars.js";
import { button, clamp, create, fill, isolated, labelled } from "./dom.js";
import { digits, drawBars, drawFlow, flowOf, ROW, tableOf, WIDE } from "./figures.js";
import { directionOf } from "./labels.js";
import { percentText } from "./number_text.js";
import { cellAt, times } from "./pooling.js";
import { drawLegend, scaleNote } from "./legend.js";
import { colourOf, css, inkOn } from "./scale.js";
import { newest } from "./state.js";
import { shape } from "./vector_strip.js";

/** Milliseconds for each token while playing, the weight from which a line is drawn, and the most words of an alignment. */
const PACE = 700, FAINTEST = 0.05, MOST_ALIGNED = 80;
/** The share of all other tokens that is not listed: stored probabilities have six digits. */
const UNLISTED = 5e-5;

/** @param {Explorer} explorer @returns {Panel} */
export function generationPanel(explorer) {
  const { say, state, overview: { generation, labels: lists } } = explorer, tokens = /** @type {string[]} */ (generation?.tokens ?? []);
  const prompt = generation?.prompt ?? 0, count = tokens.length - prompt;
  const latest = newest();
  /** What is drawn. @type {Cells | null} */
  let shown = null;
  let now = Math.max(0, count - 1), timer = 0;
  const slider = create("input", { type: "range", min: 0, max: Math.max(0, count - 1), "data-label": "generation-step", oninput: () => go(Number(slider.value)) });
  const play = button(null, toggle), place = create("output.quiet");
  const { stops, logSums } = /** @type {{stops: number[], logSums: number[][]}} */ (generation?.temperatures ?? { stops: [1], logSums: [] });
  const heat = create("input", { type: "range", min: 0, max: stops.length - 1, oninput: () => state.set({ temperature: stops[Number(heat.value)] }) });
  const degrees = create("output"), bars = create("ol.bar-list"), exact = create("div", create("span.tools", labelled("temperature", heat), degrees), create("p.hint#temperature-hint"));
  const hint = create("p.hint"), text = create("p.generation-text"), likely = create("div.generation-likely", create("h3#generation-likely"), exact, bars);
  const alignment = create("div.alignment"), beamList = create("ol"), beams = create("div.generation-beams", create("h3#generation-beams"), create("p.hint#generation-beams-hint"), beamList);
  const aligned = create("div.generation-aligned", create("h3#generation-alignment"), alignment);
  const element = create("section.generation-panel", { "data-label": "generation-title" },
    create("div.generation-bar", play, slider, place), hint, text, create("div.generation-columns", likely, aligned), beams);

  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  /** Records in which the rows are the tokens of this generation. */
  const fits = () => explorer.record().kind !== "encoder" && explorer.record().T >= tokens.length - 1;
  /** @param {number} to */
  function go(to) {
    now = clamp(to, 0, count - 1);
    state.set({ written: now, ...(fits() && { query: Math.max(0, prompt + now - 1), key: null }) });
  }

  function toggle() {
    if (timer) { stop(); return; }
    if (calm()) { go((now + 1) % count); return; }
    if (now === count - 1) go(0);
    timer = window.setInterval(() => { if (now >= count - 1) stop(); else go(now + 1); }, PACE);
    drawPlay();
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    drawPlay();
  }

  const drawPlay = () => { play.textContent = say(timer ? "generation-stop" : calm() ? "generation-next" : "generation-play"); };

  function load() {
    const { layer, head } = state.get();
    latest(fits() ? explorer.headCells(layer, head) : Promise.resolve(null), draw, () => draw(null));
  }

  /** @param {Cells | null} cells */
  function draw(cells) {
    shown = cells;
    drawPlay();
    slider.value = String(now);
    place.textContent = say("generation-place", { at: now + 1, count });
    slider.ariaValueText = say("generation-value", { at: now + 1, count, token: tokens[prompt + now] });
    hint.textContent = say(explorer.record().kind === "cross" ? "generation-hint-cross" : "generation-hint");
    drawText(cells);
    drawLikely();
    drawAlignment(cells);
    drawBeams();
  }

  /** The weights of the current token's row, by position of the key. @param {Cells | null} cells */
  function rowOf(cells, written = now) {
    if (!cells) return null;
    const row = cellAt(cells.rowStarts, prompt + written - 1);
    return (/** @type {number} */ key) => {
      const col = cellAt(cells.colStarts, key), size = cells.colStarts[col + 1] - cells.colStarts[col];
      return cells.values[row * cells.C + col] / size;
    };
  }

  /** @param {Cells | null} cells */
  function drawText(cells) {
    const weight = explorer.record().kind === "cross" ? null : rowOf(cells), scale = cells && explorer.scaleOf(cells);
    const parts = tokens.map((token, i) => {
      const one = isolated(token, i < prompt ? "given" : i < prompt + now ? "written" : i === prompt + now ? "current" : "ahead");
      const rgb = weight && scale && i < prompt + now ? colourOf(explorer.overview, scale, weight(i)) : null;
      if (rgb && weight) {
        [one.style.background, one.style.color] = [css(rgb), inkOn(rgb)];
        one.title = weight(i).toFixed(3);
      }
      if (i >= prompt) one.addEventListener("click", () => go(i - prompt));
      return one;
    });
    const part = (/** @type {string} */ key) => create("small", say(key));
    text.dir = directionOf(tokens);
    fill(text, create("span.generation-part", part("generation-prompt"), ...parts.slice(0, prompt)),
      create("span.generation-part.answer", part("generation-answer"), ...parts.slice(prompt)));
  }

  /** The index of the chosen temperature in the list of those with sums; the index of 1 if it is not in the list. */
  const heated = () => { const { temperature } = state.get(); return stops.indexOf(stops.includes(temperature) ? temperature : 1); };

  /** The likely tokens in place of the written one, and all others together, as bars; at another temperature a line marks the probability at 1. */
  function candidates() {
    const listed = /** @type {[string, number][]} */ (generation.candidates?.[now] ?? []), at = heated(), T = stops[at];
    const shares = listed.map(([, p]) => p ** (1 / T) / Math.exp(logSums[now]?.[at] ?? 0));
    const rest = (/** @type {number[]} */ all) => 1 - all.reduce((sum, one) => sum + one, 0);
    const names = [...listed, /** @type {[string, number]} */ ([say("generation-others"), rest(listed.map(([, p]) => p))])];
    const found = names.map(([label, before], i) => {
      const share = shares[i] ?? rest(shares);
      return { label, share, text: percentText(share), chosen: label === tokens[prompt + now], ...(T !== 1 && { before }) };
    });
    return found.filter(({ share }, i) => i < listed.length || (i && share > UNLISTED));
  }

  function drawLikely() {
    const found = candidates(), at = heated();
    likely.hidden = !found.length;
    exact.hidden = stops.length < 2;
    [heat.value, degrees.textContent] = [String(at), stops[at].toFixed(1)];
    heat.ariaValueText = degrees.textContent;
    fillBars(bars, found);
  }

  /** The text as it is shaded; the answer in lines of its own. @returns {import("./figures.js").Word[]} */
  const wordsShown = () => Array.from(text.querySelectorAll("bdi"), (node, i) => {
    const { background, color } = node.style;
    return { text: node.textContent, fill: background, colour: color, edge: i === prompt + now ? "mark" : undefined, faint: i > prompt + now, gap: i === prompt ? 22 : i ? 0 : 18 };
  });

  /** The weights of the alignment that are drawn: source, written token, weight. @param {number} count */
  const links = (count) => tokens.slice(prompt, prompt + now + 1).flatMap((_, to) => times(count, (from) => /** @type {const} */ ([from, to, rowOf(shown, to)?.(from) ?? 0])))
    .filter(([, , weight]) => weight >= FAINTEST);

  /** @param {Pen} ruler @returns {Figure | null} */
  function figure(ruler) {
    if (count < 1 || !text.childElementCount) return null;
    const flow = flowOf(ruler, wordsShown(), WIDE), scale = shown && explorer.scaleOf(shown), bars = candidates(), T = stops[heated()], half = (WIDE - 40) / 2;
    const source = aligned.hidden ? [] : Array.from(alignment.querySelectorAll("ol:first-child li"), (one) => one.textContent);
    const starts = flow.boxes.filter(({ gap }) => gap), below = flow.height + 14, target = tokens.slice(prompt), x = bars.length ? half + 40 : 0;
    const rows = Math.max(bars.length, source.length && Math.max(source.length, target.length)), bottom = below + (rows ? 26 + rows * ROW : 0);
    const widest = (/** @type {string[]} */ all) => Math.min(half / 3, Math.max(0, ...all.map((one) => ruler.width(one, 12)))), from = x + widest(source) + 8, to = x + half - widest(target) - 8;
    return {
      width: WIDE, height: bottom + (scale ? 46 : 0), notes: [hint.textContent, T !== 1 && say("temperature-hint"), scale && scaleNote(explorer, scale)],
      draw(pen) {
        const quiet = explorer.colour("quiet"), ink = explorer.colour("ink"), mark = explorer.colour("mark"), heading = { size: 12, weight: 600, fill: ink };
        drawFlow(explorer, pen, flow, 0, 0);
        starts.forEach(({ y }, i) => pen.text(say(i === starts.length - 1 ? "generation-answer" : "generation-prompt"), 0, y - 8, { size: 11, fill: quiet }));
        if (bars.length) pen.text(T === 1 ? say("generation-likely") : `${say("generation-likely")} (T = ${T})`, 0, below + 8, heading);
        drawBars(explorer, pen, bars, 0, below + 22, half);
        if (source.length) pen.text(say("generation-alignment"), x, below + 8, heading);
        const place = (/** @type {number} */ i) => below + 22 + (i + 0.5) * ROW;
        if (source.length) for (const [one, other, weight] of links(source.length))
          pen.curve([from, place(one)], [to, place(other)], true, other === now ? mark : explorer.colour("accent"), 1 + 4 * weight, (other === now ? 1 : 0.35) * Math.max(0.25, weight));
        if (source.length) [source, target].forEach((all, side) => all.forEach((word, i) => pen.text(word, side ? to + 6 : from - 6, place(i), { size: 12, fill: side && i === now ? mark : ink, align: side ? "left" : "right", most: half / 3 })));
        if (scale) drawLegend(explorer, pen, scale, 0, bottom + 4);
      },
    };
  }

  /** What the written token read, and what else was likely. */
  function table() {
    if (count < 1) return null;
    const weight = rowOf(shown), { T, S, kind } = explorer.record(), read = weight ? times(kind === "cross" ? S : Math.min(T, prompt + now), weight) : [], { key } = explorer.axes();
    const rows = [...read.map((value, i) => ["read", i, key.at(i), digits(value)]), ...candidates().map(({ label, share }, i) => ["likely", i, label, share])];
    return rows.length ? tableOf(explorer, ["kind", "position", "token", "value"], rows, { written: tokens[prompt + now], at: now, temperature: stops[heated()] }) : null;
  }

  /** @param {Cells | null} cells */
  function drawAlignment(cells) {
    const record = explorer.record(), source = record.labels.tokens.keys === null ? null : lists[record.labels.tokens.keys];
    aligned.hidden = record.kind !== "cross" || !cells || !source || source.length > MOST_ALIGNED || tokens.length > MOST_ALIGNED;
    if (aligned.hidden || !source) return;
    const target = tokens.slice(prompt), high = Math.max(source.length, target.length);
    const drawing = shape("svg", { viewBox: `0 0 100 ${high}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const linked = new Set();
    for (const [from, to, weight] of links(source.length)) {
      if (to === now) linked.add(from);
      drawing.append(shape("path", { class: to === now ? "now" : "", "stroke-opacity": (to === now ? 1 : 0.35) * Math.max(0.25, weight),
        "stroke-width": 1 + 4 * weight, "vector-effect": "non-scaling-stroke",
        d: `M0 ${from + 0.5}C50 ${from + 0.5} 50 ${to + 0.5} 100 ${to + 0.5}` }));
    }
    const words = (/** @type {string[]} */ all, /** @type {(i: number) => string} */ kind) => create("ol", ...all.map((word, i) => create("li", { class: kind(i) }, isolated(word))));
    alignment.style.setProperty("--rows", String(high));
    fill(alignment, words(source, (i) => (linked.has(i) ? "now" : "")), drawing, words(target, (i) => (i === now ? "now" : i > now ? "ahead" : "")));
  }

  function drawBeams() {
    const all = /** @type {{tokens: string[], score: number}[]} */ (generation.beams ?? []);
    beams.hidden = all.length < 2;
    if (beams.hidden) return;
    fill(beamList, ...all.map(({ tokens: written, score }) => create("li", create("span.beam-score", score.toFixed(2).replace("-", "−")),
      ...written.map((token, i) => isolated(token, i === now ? "current" : token === all[0].tokens[i] ? "" : "differs")))));
  }

  return {
    element, figure, table,
    update(next, has) {
      if (count < 1) return;
      const row = fits() && has("query") && next.query !== null ? next.query - prompt + 1 : -1;
      if (has("written") && next.written !== null) go(next.written);
      else if (row >= 0 && row < count) now = row;
      if (next.view === "generation" && next.depth === "head" && has("written", "query", "layer", "head", "lang", "scale", "view", "depth")) load();
      else if (has("temperature")) drawLikely();
    },
    destroy: () => clearInterval(timer),
  };
}
