// The page of a file: mounts the stored trace, and keeps the state in the address.

import { mount } from "./mount.js";
import { fileSource } from "./file_source.js";
import { cached } from "./sources.js";
import { firstState, stateFromText, stateToText } from "./state.js";

/** Mount the trace stored in a document. @param {Document} page */
async function openPage(page) {
  const place = /** @type {HTMLElement} */ (page.getElementById("regard")), source = cached(fileSource(page));
  const overview = await source.overview().then((answer) => /** @type {Overview} */ (answer.about), () => null);
  const hasAddress = location.protocol !== "about:";  // a frame in a notebook has none
  const state = overview && hasAddress ? stateFromText(location.hash, overview) : {};
  const start = overview && firstState(overview);
  const text = (/** @type {State} */ now) => (start ? `#${stateToText(now, start)}` : "");
  let timer = 0;
  const view = await mount(place, source, {
    state,
    onChange(now) {
      page.documentElement.lang = now.lang === "zh" ? "zh-CN" : "en";
      page.title = overview ? overview.title ?? overview.words[now.lang].title : page.title;
      clearTimeout(timer);  // browsers limit how often the address may change
      if (hasAddress) timer = setTimeout(() => history.replaceState(null, "", text(now)), 200);
    },
    link: hasAddress ? (now) => location.href.replace(/#.*/, "") + text(now) : undefined,
  });
  page.addEventListener("keydown", (event) => {  // keys work without a click
    if (event.target === page.body) view.root.dispatchEvent(new KeyboardEvent("keydown", event));
  });
  if (hasAddress && overview) addEventListener("hashchange", () => view.update({ ...firstState(overview), ...stateFromText(location.hash, overview) }));
  return view;
}

await openPage(document);
