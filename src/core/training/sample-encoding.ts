/**
 * Rows of samples as bytes, in two encodings that hold the same: msgpack with typed arrays, and JSON lines.
 *
 * Invariants. Rows stand one after another, so what was encoded apart may be joined. Logprobs survive both exactly: in
 * JSON each is the shortest decimal that is the same float32. Bytes are little-endian, as is every machine this runs on;
 * JSON is ASCII, what is beyond it is escaped. Compression is the caller's.
 */
import { decodeMulti, Encoder } from "@msgpack/msgpack";
import * as z from "zod";
import type { TrainerTarget } from "../../contract/training-request.ts";
import { SampleRow } from "./sample-row.ts";

/** Arguments a call may have without running out of stack. */
const AT_ONCE = 4096;

export type SampleEncoding = TrainerTarget["encoding"];

/** As a manifest names it: gzipped, as objects are stored. */
export function formatOf(encoding: SampleEncoding): string {
  return `rl.sample/1+${encoding}+gzip`;
}

export function encodeRows(rows: readonly SampleRow[], encoding: SampleEncoding): Uint8Array<ArrayBuffer> {
  if (encoding === "jsonl") {
    return asciiBytes(rows.map((row) => `${rowText(row)}\n`).join(""));
  }
  const encoder = new Encoder({ ignoreUndefined: true });
  return joined(rows.map((row) => encoder.encode(inOrder(row, packed))));
}

/** What cannot be read is refused as a whole: the message names the row and the field. */
export class SampleDecodeError extends Error {
  override readonly name = "SampleDecodeError";
}

export function decodeRows(bytes: Uint8Array, encoding: SampleEncoding): SampleRow[] {
  return readRows(bytes, encoding).map((row, at) => {
    const read = SampleRow.safeParse(row);
    if (read.success) return read.data;
    throw new SampleDecodeError(`row ${at}: ${z.prettifyError(read.error)}`);
  });
}

function readRows(bytes: Uint8Array, encoding: SampleEncoding): unknown[] {
  try {
    if (encoding === "msgpack") return [...decodeMulti(bytes)];
    const lines = asciiText(bytes).split("\n");
    return lines.filter((line) => line !== "").map((line): unknown => JSON.parse(line));
  } catch (error) {
    throw new SampleDecodeError(`these bytes are no ${encoding}: ${String(error)}`, {
      cause: error,
    });
  }
}

type Typed = Int32Array | Uint8Array | Float32Array;

/** Members in the order of the golden row; absent ones are undefined. */
function inOrder(row: SampleRow, array: (values: Typed) => unknown): Record<string, unknown> {
  const optional = (values: Typed | undefined) => values && array(values);
  const { schema, sample_id, rollout_id, group_id, env } = row;
  return {
    schema,
    sample_id,
    rollout_id,
    group_id,
    env,
    token_ids: array(row.token_ids),
    mask: array(row.mask),
    logprobs: array(row.logprobs),
    advantage: row.advantage,
    advantages: optional(row.advantages),
    reward: row.reward,
    temperature: row.temperature,
    policy_version_start: row.policy_version_start,
    policy_version_end: row.policy_version_end,
    weight_versions: row.weight_versions,
    ref_logprobs: optional(row.ref_logprobs),
    rl_weights: optional(row.rl_weights),
    ce_weights: optional(row.ce_weights),
    ref_kl_weights: optional(row.ref_kl_weights),
  };
}

function packed(values: Typed): { dtype: string; shape: [number]; data: Uint8Array } {
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

/** The number with the fewest digits that is the same float32: nine always are. */
function shortest(value: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(9));
}

/** JSON as bytes: outside ASCII only texts have characters, and there each code unit may be written by its number. */
function asciiBytes(json: string): Uint8Array<ArrayBuffer> {
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

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
