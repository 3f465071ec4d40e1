// Numbers as text, with the digits that Python shows (hand_calculation/explanations.py).

/** A number rounded for display; one that is exact with four decimals has no trailing zeros. @param {number} x */
export function spell(x) {
  if (x === 0) return "0";
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x < 0 ? "−∞" : "∞";
  const size = Math.abs(x);
  const text = size < 1e-3 || size >= 1e6 ? x.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2") : withDecimals(x);
  return text.replaceAll("-", "−");
}

/** Four decimals; ties, which are the odd multiples of 1/32, to even as in Python. @param {number} x */
function withDecimals(x) {
  let text = x.toFixed(4);
  if (Math.abs(32 * x) % 2 === 1) text = text.replace(/[13579]$/, (digit) => String(Number(digit) - 1));
  return Number(text) === x ? text.replace(/\.?0+$/, "") : text;
}

/** A number as a factor or a term: negative numbers in brackets. @param {number} x */
export function bracketed(x) {
  const text = spell(x);
  return text.startsWith("−") ? `(${text})` : text;
}

/** A probability as a percentage with about two significant digits. @param {number} share */
export function percentText(share) {
  const value = 100 * share;
  if (!Number.isFinite(value)) return "–";
  if (value > 0 && value < 0.01) return "<\u00a00.01\u00a0%";
  return `${value.toFixed(value >= 10 || value === 0 ? 0 : value >= 1 ? 1 : 2)}\u00a0%`;
}

/** A difference with its sign. @param {number} x */
export const signedText = (x) => (Number.isFinite(x) ? `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(3)}` : "–");
