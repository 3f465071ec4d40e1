// One set of drawing calls for the screen (canvas) and for files (SVG), so that both show the same picture.


/** @param {number} size @param {string} family @param {number} [weight] */
const fontText = (size, family, weight = 400) => `${weight} ${size}px ${family}`;

/**
 * A canvas of a size in CSS pixels, and its context scaled to the pixels of the screen.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @param {number} [ratio]
 */
export function sized(canvas, width, height, ratio = window.devicePixelRatio || 1) {
  const [across, down] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
  if (canvas.style.width !== `${width}px`) canvas.style.width = `${width}px`;
  if (canvas.style.height !== `${height}px`) canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** @param {CanvasRenderingContext2D} context @param {string} family @returns {Pen} */
export function canvasPen(context, family) {
  const stroke = (/** @type {string} */ colour, /** @type {number} */ wide, opacity = 1, /** @type {number[]} */ dash = []) => {
    [context.strokeStyle, context.lineWidth, context.globalAlpha] = [colour, wide, opacity];
    context.setLineDash(dash);
    context.stroke();
    context.globalAlpha = 1;
  };
  return {
    rect(x, y, width, height, fill, edge, wide = 1) {
      if (fill) { context.fillStyle = fill; context.fillRect(x, y, width, height); }
      if (edge) { context.beginPath(); context.rect(x, y, width, height); stroke(edge, wide); }
    },
    line(points, colour, wide = 1, opacity = 1, dash = []) {
      context.beginPath();
      for (let i = 0; i < points.length; i += 2) context[i ? "lineTo" : "moveTo"](points[i], points[i + 1]);
      stroke(colour, wide, opacity, dash);
    },
    curve(from, to, across, colour, wide, opacity) {
      context.beginPath();
      context.moveTo(...from);
      context.bezierCurveTo(...bends(from, to, across), ...to);
      stroke(colour, wide, opacity);
    },
    text(text, x, y, { size, fill, weight, align = "left", most = Infinity, turned = false }) {
      context.font = fontText(size, family, weight);
      [context.fillStyle, context.textAlign, context.textBaseline] = [fill, align, "middle"];
      const shown = fitted(text, most, (part) => context.measureText(part).width);
      if (!turned) { context.fillText(shown, x, y); return; }
      context.save();
      context.translate(x, y);
      context.rotate(-Math.PI / 2);
      context.fillText(shown, 0, 0);
      context.restore();
    },
    image(source, [sx, sy, sw, sh], [x, y, width, height]) {
      context.imageSmoothingEnabled = width < sw / 2;
      context.drawImage(source, sx, sy, sw, sh, x, y, width, height);
    },
    clip(x, y, width, height, draw) {
      context.save();
      context.beginPath();
      context.rect(x, y, width, height);
      context.clip();
      draw();
      context.restore();
    },
    moved(x, y, draw, scale = 1) {
      context.save();
      context.translate(x, y);
      context.scale(scale, scale);
      draw();
      context.restore();
    },
    width(text, size, weight) {
      context.font = fontText(size, family, weight);
      return context.measureText(text).width;
    },
  };
}

/** The control points of a curve that leaves and arrives at a right angle. @param {Span} from @param {Span} to @param {boolean} across @returns {[number, number, number, number]} */
function bends([x, y], [u, v], across) {
  return across ? [(x + u) / 2, y, (x + u) / 2, v] : [x, (y + v) / 2, u, (y + v) / 2];
}

/** The text, or its beginning and an ellipsis where it is too wide. @param {string} text @param {number} most @param {(text: string) => number} width */
export function fitted(text, most, width) {
  if (most === Infinity || width(text) <= most) return text;
  const characters = [...text.slice(0, 400)];
  let low = 0, high = characters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (width(`${characters.slice(0, middle).join("")}…`) <= most) low = middle; else high = middle - 1;
  }
  return `${characters.slice(0, low).join("")}…`;
}

/** A pen that writes SVG; `finish` gives the text of the file. @param {string} family @param {Pen} ruler  measures texts */
export function svgPen(family, ruler) {
  /** @type {string[]} */
  const parts = [];
  let clips = 0;
  const add = (/** @type {string} */ name, /** @type {Record<string, string | number>} */ values, text = "") => {
    const attributes = Object.entries(values).map(([key, value]) => ` ${key}="${escaped(typeof value === "number" ? String(+value.toFixed(2)) : value)}"`);
    parts.push(`<${name}${attributes.join("")}>${escaped(text)}</${name}>`);
  };
  /** @type {Pen} */
  const pen = {
    rect: (x, y, width, height, fill, edge, wide = 1) => add("rect", { x, y, width, height, fill: fill ?? "none", ...(edge && { stroke: edge, "stroke-width": wide }) }),
    line: (points, stroke, wide = 1, opacity = 1, dash = []) => add("polyline", {
      points: points.map((one) => +one.toFixed(2)).join(" "), fill: "none", stroke, "stroke-width": wide, "stroke-opacity": opacity, ...(dash.length && { "stroke-dasharray": dash.join(" ") }),
    }),
    curve: (from, to, across, stroke, wide, opacity) => {
      const [a, b, c, d] = bends(from, to, across).map((one) => +one.toFixed(2));
      add("path", { d: `M${from.map((one) => +one.toFixed(2))}C${a},${b} ${c},${d} ${to.map((one) => +one.toFixed(2))}`, fill: "none", stroke, "stroke-width": wide, "stroke-opacity": opacity });
    },
    text: (text, x, y, { size, fill, weight = 400, align = "left", most = Infinity, turned = false }) => add("text", {
      x, y: y + 0.35 * size, fill, "font-size": size, "font-weight": weight,
      "text-anchor": { left: "start", center: "middle", right: "end" }[align], ...(turned && { transform: `rotate(-90 ${x.toFixed(2)} ${y.toFixed(2)})` }),
    }, fitted(text, most, (part) => ruler.width(part, size, weight))),
    image: (source, [sx, sy, sw, sh], [x, y, width, height]) => {
      const part = document.createElement("canvas");
      [part.width, part.height] = [Math.max(1, Math.ceil(sx + sw) - Math.floor(sx)), Math.max(1, Math.ceil(sy + sh) - Math.floor(sy))];
      part.getContext("2d")?.drawImage(source, -Math.floor(sx), -Math.floor(sy));
      const [across, down] = [width / sw, height / sh];
      add("image", {
        x: x - (sx - Math.floor(sx)) * across, y: y - (sy - Math.floor(sy)) * down, width: part.width * across, height: part.height * down,
        preserveAspectRatio: "none", style: "image-rendering:pixelated", href: part.toDataURL(),
      });
    },
    clip: (x, y, width, height, draw) => {
      const id = `clip${++clips}`;
      parts.push(`<clipPath id="${id}"><rect x="${x}" y="${y}" width="${width}" height="${height}"/></clipPath><g clip-path="url(#${id})">`);
      draw();
      parts.push("</g>");
    },
    moved: (x, y, draw, scale = 1) => {
      parts.push(`<g transform="translate(${+x.toFixed(2)} ${+y.toFixed(2)})${scale === 1 ? "" : ` scale(${scale.toFixed(4)})`}">`);
      draw();
      parts.push("</g>");
    },
    width: ruler.width,
  };
  const finish = (/** @type {number} */ width, /** @type {number} */ height) => `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escaped(family)}">\n${parts.join("\n")}\n</svg>\n`;
  return { pen, finish };
}

/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign] ?? "")
  .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "");

/** A pen that only measures. @param {string} family */
export function measuringPen(family) {
  return canvasPen(/** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d")), family);
}
