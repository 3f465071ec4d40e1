// The widget of a notebook: anywidget calls `render` for each output.

import { mount } from "./mount.js";
import { cached } from "./sources.js";
import { widgetSource } from "./widget_source.js";

/** @param {{model: any, el: HTMLElement}} context */
async function renderWidget({ model, el }) {
  const source = widgetSource(model);
  const view = await mount(el, cached(source), { lang: model.get("lang") ?? undefined, theme: model.get("theme") ?? undefined });
  return () => { view.unmount(); source.close(); };
}

export default { render: renderWidget };
