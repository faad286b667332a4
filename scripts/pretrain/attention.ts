/**
 * Causal attention of whole segments, forward and backward, head by head.
 *
 * Invariants. Queries, keys and values of a row lie side by side. Widths handed to the GEMM are rounded up to its eight
 * columns; what it computes beyond the diagonal is overwritten with zeros before anyone reads it.
 */
import { softmax } from "../../packages/policy/decoder.ts";
import type { Segment } from "./batch.ts";
import type { LayerActivations, Trainee } from "./trainee.ts";

/** Where one head of one segment finds its numbers, as indices into the layer's vectors. */
interface Head {
  readonly length: number;
  /** The length, rounded up to columns of the GEMM. */
  readonly columns: number;
  readonly size: number;
  readonly query: number;
  readonly key: number;
  readonly value: number;
  readonly shares: number;
  readonly attended: number;
}

export function attend(trainee: Trainee, layer: LayerActivations, segments: readonly Segment[]): void {
  for (const head of headsOf(trainee, segments)) attendHead(trainee, layer, head);
}

function attendHead(
  { gemm, config: { width, context }, scratch: { headTransposed } }: Trainee,
  { queryKeyValue, shares, attended }: LayerActivations,
  head: Head,
): void {
  const { length, columns, size } = head;
  transposeHead(queryKeyValue, head.key, head, 3 * width, headTransposed, context);
  const [row, weights] = [3 * width, at(shares, head.shares)];
  const query = at(queryKeyValue, head.query);
  const keys = headTransposed.byteOffset;
  gemm(length, columns, size, query, row, 1, keys, context, weights, context, false);
  for (let looking = 0; looking < length; looking += 1) {
    const first = head.shares + looking * context;
    softmax(shares, first, looking + 1, 1 / Math.sqrt(size));
    shares.fill(0, first + looking + 1, first + columns);
  }
  const [values, out] = [at(queryKeyValue, head.value), at(attended, head.attended)];
  gemm(length, size, length, weights, context, 1, values, row, out, width, false);
}

/** From the gradient of what was attended to that of queries, keys and values. */
export function attendBackward(trainee: Trainee, layer: LayerActivations, segments: readonly Segment[]): void {
  for (const head of headsOf(trainee, segments)) attendHeadBackward(trainee, layer, head);
}

function attendHeadBackward(
  { gemm, config: { width, context }, scratch }: Trainee,
  { queryKeyValue, shares }: LayerActivations,
  head: Head,
): void {
  const { length, columns, size } = head;
  const { attendedGradient, queryKeyValueGradient, headTransposed, sharesGradient } = scratch;
  const row = 3 * width;
  const from = at(attendedGradient, head.attended);
  const weights = at(shares, head.shares);
  const intoValues = at(queryKeyValueGradient, head.value);
  gemm(length, size, length, weights, 1, context, from, width, intoValues, row, false);

  transposeHead(queryKeyValue, head.value, head, row, headTransposed, context);
  const [values, scores] = [headTransposed.byteOffset, sharesGradient.byteOffset];
  gemm(length, columns, size, from, width, 1, values, context, scores, context, false);
  softmaxBackward(shares, head, sharesGradient, context);

  const [query, key] = [at(queryKeyValue, head.query), at(queryKeyValue, head.key)];
  const intoQuery = at(queryKeyValueGradient, head.query);
  const intoKey = at(queryKeyValueGradient, head.key);
  gemm(length, size, length, scores, context, 1, key, row, intoQuery, row, false);
  gemm(length, size, length, scores, 1, context, query, row, intoKey, row, false);
}

/** Turns the gradient of the shares into that of the scores, zero beyond the diagonal. */
function softmaxBackward(
  shares: Float32Array,
  { shares: start, length, columns, size }: Head,
  gradient: Float32Array,
  context: number,
): void {
  const scale = 1 / Math.sqrt(size);
  for (let looking = 0; looking < length; looking += 1) {
    const [share, first] = [start + looking * context, looking * context];
    let mean = 0;
    for (let j = 0; j <= looking; j += 1) mean += (shares[share + j] ?? 0) * (gradient[first + j] ?? 0);
    for (let j = 0; j <= looking; j += 1) {
      gradient[first + j] = (shares[share + j] ?? 0) * ((gradient[first + j] ?? 0) - mean) * scale;
    }
    gradient.fill(0, first + looking + 1, first + columns);
  }
}

function* headsOf({ config: { width, heads, context } }: Trainee, segments: readonly Segment[]): Generator<Head> {
  const size = width / heads;
  for (const { first, length } of segments) {
    for (let head = 0; head < heads; head += 1) {
      const query = first * 3 * width + head * size;
      yield {
        length,
        columns: Math.ceil(length / 8) * 8,
        size,
        query,
        key: query + width,
        value: query + 2 * width,
        shares: (first * heads + head * length) * context,
        attended: first * width + head * size,
      };
    }
  }
}

function transposeHead(
  vector: Float32Array,
  first: number,
  { length, size }: Head,
  rowStride: number,
  out: Float32Array,
  outStride: number,
): void {
  for (let row = 0; row < length; row += 1) {
    for (let j = 0; j < size; j += 1) {
      out[j * outStride + row] = vector[first + row * rowStride + j] ?? 0;
    }
  }
}

/** The address of an element. */
function at(vector: Float32Array, index: number): number {
  return vector.byteOffset + index * vector.BYTES_PER_ELEMENT;
}
