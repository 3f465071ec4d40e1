// Larger cells from smaller ones, as trace/pooling.py defines them: keys are summed, queries averaged by their count.

/**
 * The cells with rows and columns joined into groups, each given by its first row or column.
 * @param {Cells} cells
 * @param {number[]} rows
 * @param {number[]} cols
 * @returns {Cells}
 */
export function poolAt(cells, rows, cols) {
  const { values, attending, C } = cells, R = rows.length, wide = cols.length;
  const found = new Float32Array(R * wide), counts = new Int32Array(R), line = new Float64Array(wide);
  for (let r = 0; r < R; r++) {
    line.fill(0);
    for (let row = rows[r], stop = rows[r + 1] ?? cells.R; row < stop; row++) {
      counts[r] += attending[row];
      for (let c = 0; c < wide; c++) {
        let sum = 0;
        for (let col = cols[c], end = cols[c + 1] ?? C; col < end; col++) sum += values[row * C + col];
        line[c] += attending[row] * sum;
      }
    }
    for (let c = 0; c < wide; c++) found[r * wide + c] = line[c] / Math.max(1, counts[r]);
  }
  const starts = (/** @type {number[]} */ groups, /** @type {ArrayLike<number>} */ before) => [...groups.map((at) => before[at]), before[before.length - 1]];
  const first = cells.firstColumn < 0 ? -1 : cols.findLastIndex((at) => at <= cells.firstColumn);
  return {
    R, C: wide, values: found, attending: counts, firstColumn: first, first: cells.first, even: cells.even,
    rowStarts: starts(rows, cells.rowStarts), colStarts: starts(cols, cells.colStarts),
  };
}

/** An array of what `make` returns for 0, 1, … @template T @param {number} count @param {(i: number) => T} make */
export const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

/** 0, 1, … @param {number} count */
export const counted = (count) => times(count, (i) => i);

/** The first positions of cells of one size, and the end. @param {number} start @param {number} stop @param {number} size */
export function startsOf(start, stop, size) {
  const count = Math.max(0, Math.ceil((stop - start) / size)), found = new Int32Array(count + 1);
  for (let i = 0; i < count; i++) found[i] = start + i * size;
  found[count] = stop;
  return found;
}

/** The row or column that holds a position. @param {ArrayLike<number>} starts @param {number} position */
export function cellAt(starts, position) {
  let low = 0, high = starts.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= position) low = middle; else high = middle - 1;
  }
  return Math.max(0, low);
}
