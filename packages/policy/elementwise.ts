/** What a transformer does between its matrix products, row by row, so that no row depends on another. */

/** Added to the mean square, so that a row of zeros has a norm. */
const NORM_EPSILON = 1e-5;

/** One over the root mean square of row `row`; rows are as long as `gain`. */
export function inverseNorm(input: Float32Array, row: number, width: number): number {
  let squares = 0;
  for (let at = row * width; at < (row + 1) * width; at += 1) squares += (input[at] ?? 0) ** 2;
  return 1 / Math.sqrt(squares / width + NORM_EPSILON);
}

/** RMSNorm of the first `rows` rows, each as long as `gain`. */
export function normalize(rows: number, input: Float32Array, gain: Float32Array, out: Float32Array): void {
  const width = gain.length;
  for (let row = 0; row < rows; row += 1) {
    const scale = inverseNorm(input, row, width);
    const first = row * width;
    for (let j = 0; j < width; j += 1) {
      out[first + j] = (input[first + j] ?? 0) * scale * (gain[j] ?? 0);
    }
  }
}

/** ReLU of the first `length` values, in place. */
export function rectify(values: Float32Array, length: number): void {
  for (let at = 0; at < length; at += 1) if ((values[at] ?? 0) < 0) values[at] = 0;
}

/** Softmax of `scale` times the `length` values from `first`, in place. */
export function softmax(values: Float32Array, first: number, length: number, scale: number): void {
  let peak = Number.NEGATIVE_INFINITY;
  for (let at = first; at < first + length; at += 1) peak = Math.max(peak, values[at] ?? 0);
  let total = 0;
  for (let at = first; at < first + length; at += 1) {
    const weight = Math.exp(((values[at] ?? 0) - peak) * scale);
    values[at] = weight;
    total += weight;
  }
  for (let at = first; at < first + length; at += 1) values[at] = (values[at] ?? 0) / total;
}
