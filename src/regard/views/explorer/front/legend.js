// The legend: colours, the weights they stand for, and masked cells.

import { create, fill } from "./dom.js";
import { drawRamp, drawSamples, rampColours, samplesOf } from "./figures.js";
import { shortWeight } from "./scale.js";

const STOPS = 24, APART = 0.17;

/** Places of a bar of colours with their weights. @param {Scale} scale @returns {[number, string][]} */
const ticksText = (scale) => ticksOf(scale).map((weight) => [scale.level(weight), `${weight === scale.ceiling && scale.clipped ? "≥ " : ""}${shortWeight(weight)}`]);

/** What the colours of a scale follow. @param {Explorer} explorer @param {Scale} scale */
export const scaleNote = ({ say }, { name, logThreshold }) =>
  logThreshold === null ? say(`scale-note-${name}`) : say("scale-note-threshold", { weight: shortWeight(logThreshold) });

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

/** A bar of the colours over numbers at some places of it, 0 to 1. @param {Overview} overview */
export function ramp(overview) {
  const ticks = create("div.ticks"), bar = create("div.bar", { style: `background: linear-gradient(to right, ${rampColours(overview, STOPS).join(", ")})` });
  /** @param {[number, string][]} found */
  const update = (found) => fill(ticks, ...found.map(([at, text]) => create("span", { style: `left: ${100 * at}%` }, text)));
  return { element: create("div.ramp", bar, ticks), update };
}

/** @param {Explorer} explorer */
export function legend(explorer) {
  const bar = ramp(explorer.overview), note = create("p.quiet"), masked = create("span", create("span.masked"), create("span#masked"));
  const element = create("div.legend", bar.element, create("div.others", masked), note);
  /** @param {Scale} scale */
  const update = (scale) => {
    bar.update(ticksText(scale));
    note.textContent = scaleNote(explorer, scale);
  };
  return { element, update };
}

/** The legend of a saved picture, 42 pixels high. @param {Explorer} explorer @param {Pen} pen @param {Scale} scale @param {number} left @param {number} top */
export function drawLegend(explorer, pen, scale, left, top) {
  drawRamp(explorer, pen, explorer.say("figure-weight"), rampColours(explorer.overview), ticksText(scale), left, top, 170);
  drawSamples(explorer, pen, samplesOf(pen, [{ fill: null, text: explorer.say("masked") }], Infinity), left + 190, top + 10);
}
