/** The weights that come with Rollcall: made by `npm run pretrain`, 32-bit floats, little-endian, as parameters.ts orders them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { POLICY } from "./model-config.ts";
import { parameterCount } from "./parameters.ts";

export const BASE_WEIGHTS_FILE = join(import.meta.dirname, "base-weights.bin");
const BYTES_PER_WEIGHT = 4;

/** How many weights the policy has. */
export const WEIGHT_COUNT = parameterCount(POLICY);

/** A copy of its own for each caller. */
export function baseWeights(): Float32Array<ArrayBuffer> {
  return weightsFromBytes(readFileSync(BASE_WEIGHTS_FILE));
}

/** Throws RangeError when the bytes are not as many as the weights need. */
export function weightsFromBytes(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const expected = WEIGHT_COUNT * BYTES_PER_WEIGHT;
  if (bytes.byteLength !== expected) {
    throw new RangeError(`weights are ${expected} bytes, but ${bytes.byteLength} were given`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: WEIGHT_COUNT }, (_, at) => view.getFloat32(at * BYTES_PER_WEIGHT, true));
}

export function bytesFromWeights(weights: Float32Array): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(weights.length * BYTES_PER_WEIGHT));
  for (const [at, weight] of weights.entries()) {
    view.setFloat32(at * BYTES_PER_WEIGHT, weight, true);
  }
  return new Uint8Array(view.buffer);
}
