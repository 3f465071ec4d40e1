// Arrays of an answer: bytes to numbers, and half floats to floats.

/** @type {Record<string, new (buffer: ArrayBuffer) => Numbers>} */
const ARRAY_KINDS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u1: Uint8Array, f2: Uint16Array };

/**
 * Little-endian bytes as numbers; "f2" stays a Uint16Array until `floats` decodes it.
 * @param {DataView | Uint8Array | ArrayBuffer} bytes
 * @param {string} dtype
 */
export function numbersFrom(bytes, dtype) {
  const kind = ARRAY_KINDS[dtype];
  if (!kind) throw new TypeError(`unknown dtype ${dtype}`);
  const view = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return new kind(view.slice().buffer);  // a copy: the bytes may begin at any offset
}

/**
 * An answer from its binary form: the length of a JSON header (u32), the header, then each array at the next multiple
 * of 8 bytes. The header is `{about, arrays: [{name, dtype, shape}]}`.
 * @param {ArrayBuffer} buffer
 * @returns {Answer}
 */
export function answerFromBytes(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let offset = eights(4 + length);
  /** @type {Record<string, Numbers>} */
  const arrays = {};
  for (const { name, dtype, shape } of header.arrays) {
    const bytes = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1) * Number(dtype[1]);
    arrays[name] = numbersFrom(new Uint8Array(buffer, offset, bytes), dtype);
    offset += eights(bytes);
  }
  return { about: header.about, arrays };
}

/** @param {number} bytes */
const eights = (bytes) => Math.ceil(bytes / 8) * 8;

/** Numbers as floats: half floats, which arrive as Uint16Array, are decoded. @param {Numbers} numbers @returns {Float32Array} */
export function floats(numbers) {
  if (numbers instanceof Float32Array) return numbers;
  if (!(numbers instanceof Uint16Array)) return Float32Array.from(numbers);
  const found = new Float32Array(numbers.length);
  for (let i = 0; i < numbers.length; i++) found[i] = half(numbers[i]);
  return found;
}

/** @param {number} bits */
function half(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}
