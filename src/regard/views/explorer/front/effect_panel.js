// "Did it matter?": the next token with and without a head or an edge, and weights times the size of what is read.

import { barList } from "./bars.js";
import { button, create, fill } from "./dom.js";
import { drawBars, NARROW, ROW, tableOf } from "./figures.js";
import { headTitle } from "./labels.js";
import { percentText } from "./number_text.js";
import { weightText } from "./scale.js";
import { newest } from "./state.js";

/** The most keys listed by weight × norm. */
const MOST_NORMS = 6;

/** @param {Explorer} explorer @returns {Panel} */
export function effectPanel(explorer) {
  const { say, state } = explorer;
  const asked = newest(), read = newest();
  /** The last answer and what it was about. @type {{about: any, what: string} | null} */
  let last = null;
  /** What the lists show. @type {{tokens: import("./bars.js").Bar[], read: import("./bars.js").Bar[], kl: string}} */
  const drawn = { tokens: [], read: [], kl: "" };
  const silence = button("effect-silence", () => ask(false)), cut = button(null, () => ask(true));
  const buttons = create("div.effect-buttons", silence, cut), result = create("div.effect-result", { "aria-live": "polite" });
  const norms = create("div.effect-norms");
  const element = create("section.effect-panel", { "data-label": "effect-title" }, create("h3#effect-title"),
    create("p.effect-honest.quiet#effect-honest"), buttons, create("p.hint#effect-how"), result, norms);

  /** @param {boolean} edge */
  function ask(edge) {
    const { layer, head, query, key } = state.get(), done = () => { element.ariaBusy = null; };
    const request = edge ? { cut: { layer, head, query, key } } : { silence: { layer, head } };
    const what = edge ? edgeName() : headTitle(explorer, layer, head);
    element.ariaBusy = "true";
    asked(explorer.source.effect(request), ({ about }) => { done(); last = { about, what }; drawResult(); },
      (error) => { done(); fill(result, create("p.problem", explorer.fail(error))); });
  }

  function edgeName() {
    const axes = explorer.axes(), { query, key } = state.get();
    return `${axes.query.at(query ?? 0)} → ${axes.key.at(key ?? 0)}`;
  }

  function drawResult() {
    drawn.tokens = [];
    if (!last) { fill(result); return; }
    const { before, after, kl } = last.about, then = new Map(/** @type {[string, number][]} */ (after));
    const first = new Map(/** @type {[string, number][]} */ (before)), tokens = [...new Set([...first.keys(), ...then.keys()])];
    drawn.tokens = tokens.map((label) => {
      const [was, is] = [first.get(label), then.get(label)];
      return { label, before: was ?? 0, share: is ?? 0, text: `${was === undefined ? "–" : percentText(was)} → ${is === undefined ? "–" : percentText(is)}` };
    });
    drawn.kl = `KL = ${kl.toPrecision(3)}`;
    fill(result, create("h4", say("effect-without", { what: last.what })), create("p.hint", say("effect-bars")), barList(drawn.tokens),
      create("p.effect-kl", create("b", drawn.kl), ` ${say(kl < 0.01 ? "effect-little" : "effect-much")}`));
  }

  /** What the selected query reads: weight × norm of each key. */
  function drawNorms() {
    const { layer, head } = state.get();
    read(explorer.headCells(layer, head), fillNorms, () => { norms.hidden = true; });
  }

  /** @param {Cells} cells */
  function fillNorms(cells) {
    const sizes = cells.norms, { T } = explorer.record(), row = state.get().query ?? T - 1;
    norms.hidden = !sizes || cells.R !== T;
    drawn.read = [];
    if (norms.hidden || !sizes) return;
    const axes = explorer.axes(), line = cells.values.subarray(row * cells.C, (row + 1) * cells.C);
    const found = Array.from(line, (weight, col) => ({ col, weight, by: weight * sizes[col] })).sort((a, b) => b.by - a.by).slice(0, MOST_NORMS);
    const most = found[0]?.by || 1, heaviest = Math.max(...line) || 1;
    drawn.read = found.filter(({ by }) => by > 0).map(({ col, weight, by }) => ({ label: axes.key.at(cells.colStarts[col]),
      share: by / most, before: weight / heaviest, text: by >= 0.001 ? by.toPrecision(3) : weightText(by) }));
    fill(norms, create("h4", say(cells.normsAre === "value" ? "effect-value" : "effect-norms", { query: axes.query.at(row) })),
      create("p.hint", say("effect-norms-hint")), barList(drawn.read));
  }

  function draw() {
    const { query, key } = state.get(), { effect } = explorer.record().can, edge = query !== null && key !== null;
    buttons.hidden = !effect;
    /** @type {HTMLElement} */ (buttons.nextElementSibling).hidden = effect;
    cut.disabled = !edge;
    cut.textContent = edge ? say("effect-cut", { edge: edgeName() }) : say("effect-cut-none");
    drawResult();
    drawNorms();
  }

  /** @returns {Figure | null} */
  function figure() {
    const { tokens, read } = drawn, lists = [{ list: tokens, node: result }, { list: read, node: norms }].filter(({ list }) => list.length);
    if (!lists.length) return null;
    const parts = lists.map(({ list, node }) => ({ list, title: node.querySelector("h4")?.textContent ?? "", hint: node.querySelector(".hint")?.textContent ?? "" }));
    return {
      width: NARROW, height: parts.reduce((high, { list }) => high + list.length * ROW + 34, 0),
      notes: [tokens.length ? drawn.kl : "", ...parts.map(({ hint }) => hint), say("effect-honest")],
      draw(pen) {
        parts.reduce((top, { list, title }) => {
          pen.text(title, 0, top + 9, { size: 12, weight: 600, fill: explorer.colour("ink"), most: NARROW });
          drawBars(explorer, pen, list, 0, top + 22, NARROW);
          return top + list.length * ROW + 34;
        }, 0);
      },
    };
  }

  function table() {
    const rows = [...drawn.tokens.map(({ label, before, share }) => ["next token", label, before ?? null, share]), ...drawn.read.map(({ label, text }) => ["weight × norm", label, null, Number(text)])];
    return rows.length ? tableOf(explorer, ["kind", "token", "before", "value"], rows, { what: last?.what ?? null, kl: last?.about.kl ?? null }) : null;
  }

  return {
    element, figure, table,
    update(now, has) {
      if (has("layer", "head")) last = null;
      if (now.depth === "head" && has("layer", "head", "query", "key", "lang", "depth", "merge")) draw();
    },
  };
}
