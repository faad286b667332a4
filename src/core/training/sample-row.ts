/**
 * `rl.sample/1`: one flat, unshifted token sequence of a rollout, in the form for trainers (docs/training.md).
 *
 * Invariants. All arrays have the same length: `logprobs[i]` is the logprob of token i given those before it, so index
 * 0 never trains. Context has mask 0, logprob 0 and no advantage. The spans cover exactly the tokens that train. A
 * row's reward and advantage are in its batch's credits, which have precedence over the row's own.
 */

import { decodeMulti, Encoder } from "@msgpack/msgpack";
import * as z from "zod";
import type { TrainerTarget } from "../../contract/training-request.ts";
import type { TokenSample, VersionSpan } from "./samples.ts";
import { logprobFault } from "./trainable.ts";

const DTYPES = { int32: Int32Array, float32: Float32Array, uint8: Uint8Array } as const;
type Dtype = keyof typeof DTYPES;
type ArrayOf<Kind extends Dtype> = InstanceType<(typeof DTYPES)[Kind]>;

/** An array in msgpack: numpy's name of its type, its shape, and its little-endian bytes. */
const Packed = z.object({
  dtype: z.string(),
  shape: z.tuple([z.int().min(0)]),
  data: z.instanceof(Uint8Array),
});

/** A packed or a plain array; `undefined` if the bytes are not such an array. */
function arrayOf<Kind extends Dtype>(dtype: Kind) {
  const TypedArray = DTYPES[dtype];
  return z.union([Packed, z.array(z.number())]).transform((given, { addIssue }): ArrayOf<Kind> => {
    if (Array.isArray(given)) return TypedArray.from(given) as ArrayOf<Kind>;
    const [length] = given.shape;
    if (given.dtype === dtype && given.data.length === length * TypedArray.BYTES_PER_ELEMENT) {
      // Copied: an array's bytes may begin anywhere in a message, but a typed array needs an aligned offset.
      return new TypedArray(new Uint8Array(given.data).buffer) as ArrayOf<Kind>;
    }
    addIssue({ code: "custom", message: `is not an array of ${length} ${dtype}` });
    return z.NEVER;
  });
}

const Version = z.int().min(0);
const Floats = arrayOf("float32").optional();

/** A decoded message. Unknown members are ignored; whole numbers are numbers. */
export const SampleRow = z.object({
  schema: z.literal("rl.sample/1"),
  sample_id: z.string().min(1),
  rollout_id: z.string().min(1),
  group_id: z.string().min(1),
  env: z.string(),
  token_ids: arrayOf("int32"),
  mask: arrayOf("uint8"),
  logprobs: arrayOf("float32"),
  advantage: z.number().optional(),
  advantages: Floats,
  reward: z.number().nullable().optional(),
  temperature: z.number().positive(),
  policy_version_start: Version,
  policy_version_end: Version,
  weight_versions: z.array(z.object({ version: Version, start: z.int().min(0), end: z.int().min(0) })).optional(),
  ref_logprobs: Floats,
  rl_weights: Floats,
  ce_weights: Floats,
  ref_kl_weights: Floats,
});
export type SampleRow = z.output<typeof SampleRow>;

export interface RowOrigin {
  readonly rollout_id: string;
  readonly group_id: string;
  /** `id@version`; for a group of environments the member's name. */
  readonly env: string;
  /** The sampling temperature, above 0. */
  readonly temperature: number;
}

/** The rows of one rollout. Branches have the same rollout id; a row's own id is unique in the run. */
export function rowsOf(samples: readonly TokenSample[], origin: RowOrigin): SampleRow[] {
  return samples.map(({ trainable_tokens: _, weight_versions, ...sample }, branch) => ({
    schema: "rl.sample/1",
    sample_id: `${origin.rollout_id}.${branch}`,
    ...origin,
    ...sample,
    weight_versions: [...weight_versions],
  }));
}

export type SampleFaultCode =
  | "length_mismatch"
  | "empty_mask"
  | "first_token_trainable"
  | "nonfinite"
  | "positive_logprob"
  | "missing_logprob"
  | "mask_logprob_disagree"
  | "span_mismatch"
  | "reserved_env"
  | "unscored";

type Rule = readonly [code: SampleFaultCode, broken: (row: SampleRow) => boolean];

const RULES: readonly Rule[] = [
  ["length_mismatch", ({ token_ids }) => token_ids.length < 2],
  ["length_mismatch", (row) => arraysOf(row).some(({ length }) => length !== row.token_ids.length)],
  ["reserved_env", ({ env }) => env === "" || env === "all"],
  ["unscored", ({ reward }) => reward === null],
  ["empty_mask", ({ mask }) => !mask.includes(1)],
  ["first_token_trainable", ({ mask }) => mask[0] !== 0],
  ["nonfinite", (row) => !floatsOf(row).every((floats) => floats.every(Number.isFinite))],
  ["mask_logprob_disagree", creditsContext],
  ["span_mismatch", ({ weight_versions, mask }) => !covers(weight_versions, mask)],
];

/** The first rule that the row breaks, as the code reported to a trainer; null for a row that may train. */
export function sampleFault(row: SampleRow): SampleFaultCode | null {
  const broken = RULES.find(([, isBroken]) => isBroken(row));
  return broken?.[0] ?? logprobFault(row.logprobs);
}

/** The row's float arrays besides the logprobs. */
function floatsOf(row: SampleRow): Float32Array[] {
  const { advantages, ref_logprobs, rl_weights, ce_weights, ref_kl_weights } = row;
  const all = [advantages, ref_logprobs, rl_weights, ce_weights, ref_kl_weights];
  return all.filter((floats) => floats !== undefined);
}

function arraysOf(row: SampleRow): { readonly length: number }[] {
  return [row.mask, row.logprobs, ...floatsOf(row)];
}

/** Whether the mask is not 0 or 1 somewhere, or a token with mask 0 has a logprob or an advantage. */
function creditsContext({ mask, logprobs, advantages }: SampleRow): boolean {
  return mask.some((bit, at) => bit > 1 || (bit === 0 && (logprobs[at] !== 0 || (advantages?.[at] ?? 0) !== 0)));
}

/** Whether the spans, in order and disjoint, cover exactly the tokens that train. Spans are optional. */
function covers(spans: readonly VersionSpan[] | undefined, mask: Uint8Array): boolean {
  if (spans === undefined) return true;
  const covered = new Uint8Array(mask.length);
  let from = 0;
  for (const { start, end } of spans) {
    if (start < from || end <= start || end > mask.length) return false;
    covered.fill(1, start, end);
    from = end;
  }
  return mask.every((bit, at) => bit === covered[at]);
}

// Rows of samples as bytes, in two encodings of the same content: msgpack with typed arrays, and JSON lines.
// Invariants. Rows are concatenated, so parts encoded separately may be joined. Both keep logprobs exactly: in JSON
// each is the shortest decimal that is the same float32. Bytes are little-endian, like every machine this runs on; JSON
// is ASCII, other characters are escaped. Compression is done by the caller.

/** Maximal arguments of one call without a stack overflow. */
const AT_ONCE = 4096;

export type SampleEncoding = TrainerTarget["encoding"];

/** The format's name in a manifest: gzipped, as objects are stored. */
export function formatOf(encoding: SampleEncoding): string {
  return `rl.sample/1+${encoding}+gzip`;
}

export function encodeRows(rows: readonly SampleRow[], encoding: SampleEncoding): Uint8Array<ArrayBuffer> {
  if (encoding === "jsonl") {
    return asciiBytes(rows.map((row) => `${rowText(row)}\n`).join(""));
  }
  const encoder = new Encoder({ ignoreUndefined: true });
  return join(rows.map((row) => encoder.encode(inOrder(row, pack))));
}

/** The data cannot be decoded and is refused as a whole: the message names the row and the field. */
export class SampleDecodeError extends Error {
  override readonly name = "SampleDecodeError";
}

export function decodeRows(bytes: Uint8Array, encoding: SampleEncoding): SampleRow[] {
  return readRows(bytes, encoding).map(parseRow);
}

/** Parses the decoded message of row `at`. Throws SampleDecodeError. */
export function parseRow(message: unknown, at: number): SampleRow {
  const read = SampleRow.safeParse(message);
  if (read.success) return read.data;
  throw new SampleDecodeError(`row ${at}: ${z.prettifyError(read.error)}`);
}

function readRows(bytes: Uint8Array, encoding: SampleEncoding): unknown[] {
  try {
    if (encoding === "msgpack") return [...decodeMulti(bytes)];
    const lines = asciiText(bytes).split("\n");
    return lines.filter((line) => line !== "").map((line): unknown => JSON.parse(line));
  } catch (error) {
    throw new SampleDecodeError(`these bytes are not ${encoding}: ${String(error)}`, {
      cause: error,
    });
  }
}

type Typed = Int32Array | Uint8Array | Float32Array;

const MEMBERS = SampleRow.keyof().options;

/** The members in the order of the schema; absent ones are undefined. */
function inOrder(row: SampleRow, array: (values: Typed) => unknown): Record<string, unknown> {
  const members = MEMBERS.map((name) => {
    const member = row[name];
    return [name, ArrayBuffer.isView(member) ? array(member) : member];
  });
  return Object.fromEntries(members);
}

function pack(values: Typed): { dtype: string; shape: [number]; data: Uint8Array } {
  const { buffer, byteOffset, byteLength } = values;
  const data = new Uint8Array(buffer, byteOffset, byteLength);
  return { dtype: dtypeOf(values), shape: [values.length], data };
}

function dtypeOf(values: Typed): string {
  if (values instanceof Int32Array) return "int32";
  return values instanceof Float32Array ? "float32" : "uint8";
}

function rowText(row: SampleRow): string {
  const plain = (values: Typed) => (values instanceof Float32Array ? Array.from(values, shortest) : Array.from(values));
  return JSON.stringify(inOrder(row, plain));
}

/** The number with the fewest digits that is the same float32: nine digits are always enough. */
export function shortest(value: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(9));
}

/** JSON as bytes. Characters outside ASCII occur only in strings, where each code unit can be escaped. */
export function asciiBytes(json: string): Uint8Array<ArrayBuffer> {
  const ascii = json.replace(/[^\0-\x7f]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  const bytes = new Uint8Array(ascii.length);
  for (let at = 0; at < ascii.length; at += 1) bytes[at] = ascii.charCodeAt(at);
  return bytes;
}

function asciiText(bytes: Uint8Array): string {
  if (bytes.some((byte) => byte > 0x7f)) throw new RangeError("a byte is not ASCII");
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; at += AT_ONCE) {
    parts.push(String.fromCharCode(...bytes.subarray(at, at + AT_ONCE)));
  }
  return parts.join("");
}

function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
