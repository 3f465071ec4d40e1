// The widget of a notebook: anywidget calls `render` for each output.

import { create, fill } from "./dom.js";
import { mount } from "./mount.js";
import { cached } from "./sources.js";
import { noAnswer, widgetSource } from "./widget_source.js";

/** Milliseconds until a person is told that the kernel does not answer. */
const PATIENCE = 5000;

/**
 * Draw a picture at once, and the explorer when the kernel answers; in a notebook that was opened again it may be gone.
 *
 * The notebook's styles end at a shadow root, and its shortcuts (in JupyterLab, x cuts a cell) at the output.
 * @param {{model: any, el: HTMLElement}} context
 */
function renderWidget({ model, el }) {
  const kernel = widgetSource(model), source = cached(kernel), lang = /** @type {Language} */ (model.get("lang") ?? "en");
  const picture = create("img", { src: `data:image/svg+xml,${encodeURIComponent(model.get("picture"))}`, alt: "" });
  const place = create("div", picture), frame = create("div");
  frame.attachShadow({ mode: "open" }).append(create("style", model.get("sheet")), place);
  frame.dataset.lmSuppressShortcuts = "true";
  fill(el, frame);
  /** @type {{unmount(): void} | null} */
  let view = null;
  let removed = false;
  const tell = (/** @type {any} */ error) => fill(place, picture, create("p", { role: "alert" }, (error.text ?? noAnswer().text)[lang]));
  const timer = setTimeout(tell, PATIENCE, noAnswer());
  source.overview().finally(() => clearTimeout(timer))
    .then(() => mount(place, source, { lang, theme: model.get("theme") ?? undefined }))
    .then((drawn) => { view = drawn; if (removed) drawn.unmount(); }, tell);
  return () => { removed = true; clearTimeout(timer); view?.unmount(); kernel.close(); };
}

export default { render: renderWidget };
