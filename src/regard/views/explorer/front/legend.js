// The legend: colours, the weights they stand for, and masked cells.

import { create } from "./dom.js";
import { times } from "./pooling.js";
import { css, shortWeight } from "./scale.js";

const STOPS = 24, APART = 0.17;

/** Round weights with colours that can be told apart, largest last. @param {Scale} scale */
export function ticksOf(scale) {
  const found = [scale.ceiling], power = Math.floor(Math.log10(scale.ceiling));
  for (let down = 0; down < 16; down++) {
    for (const times of [5, 2, 1]) {
      const weight = Number(`${times}e${power - down}`), level = scale.level(weight);
      if (level < APART) return [0, ...found.reverse()];
      if (weight < scale.ceiling && scale.level(found[found.length - 1]) - level >= APART) found.push(weight);
    }
  }
  return [0, ...found.reverse()];
}

/** @param {Explorer} explorer */
export function legend(explorer) {
  const bar = create("div.bar"), ticks = create("div.ticks"), note = create("p.quiet");
  const masked = create("span.masked"), broken = create("span.broken", { hidden: true });
  const element = create("div.legend", create("div.ramp", bar, ticks),
    create("div.others", create("span", masked, create("span", { "data-text": "masked" })), broken), note);
  /** @param {Scale} scale */
  const update = (scale) => {
    const { sequential } = explorer.overview.colours;
    const stops = times(STOPS, (i) => css(sequential[Math.round(i / (STOPS - 1) * (sequential.length - 1))]));
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    ticks.replaceChildren(...ticksOf(scale).map((weight) => {
      const tick = create("span", `${weight === scale.ceiling && scale.clipped ? "≥ " : ""}${shortWeight(weight)}`);
      tick.style.left = `${100 * scale.level(weight)}%`;
      return tick;
    }));
    note.textContent = scale.logThreshold === null ? explorer.say(`scale-note-${scale.name}`) : explorer.say("scale-note-threshold", { weight: shortWeight(scale.logThreshold) });
  };
  return { element, update };
}

/** The legend of a saved picture. @param {Explorer} explorer @param {Pen} pen @param {Scale} scale @param {number} x @param {number} y @param {number} width */
export function drawLegend(explorer, pen, scale, x, y, width) {
  const { sequential } = explorer.overview.colours, steps = 64, ink = explorer.colour("--ink");
  for (let i = 0; i < steps; i++) pen.rect(x + i * width / steps, y, width / steps + 0.5, 10, css(sequential[Math.round(i / (steps - 1) * (sequential.length - 1))]));
  for (const weight of ticksOf(scale)) pen.text(shortWeight(weight), x + width * scale.level(weight), y + 20, { size: 10, fill: ink, align: "center" });
}
