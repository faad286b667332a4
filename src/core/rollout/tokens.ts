/**
 * Packs an engine's token ids and logprobs: little-endian blobs in base64, prompt ids as a suffix (see trajectory.ts).
 */
import { continuedBy, type ModelResponse, type StoredPrompt, type TurnTokens } from "../../contract/trajectory.ts";

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DIGITS = new Uint8Array(128);
for (let value = 0; value < BASE64.length; value += 1) DIGITS[BASE64.charCodeAt(value)] = value;

type ResponseTokens = Pick<ModelResponse, "prompt_ids" | "completion_ids" | "completion_logprobs">;

/**
 * Cuts the ids to `maxLength` in total; null: no limit. A longer prompt is cut and gets no completion
 * (`overlong_prompt`); a completion is cut to what the prompt leaves. Without ids nothing is cut.
 */
export function cutTokens(
  { prompt_ids, completion_ids, completion_logprobs }: ResponseTokens,
  maxLength: number | null,
): ResponseTokens & { readonly overlong_prompt: boolean; readonly is_truncated: boolean } {
  const limit = maxLength ?? Number.POSITIVE_INFINITY;
  const [prompt, completion] = [prompt_ids?.length ?? 0, completion_ids?.length ?? 0];
  const room = Math.max(0, limit - prompt);
  return {
    prompt_ids: prompt_ids?.slice(0, limit) ?? null,
    completion_ids: completion_ids?.slice(0, room) ?? null,
    completion_logprobs: completion_logprobs?.slice(0, room) ?? null,
    overlong_prompt: prompt > limit,
    is_truncated: prompt + completion > limit,
  };
}

/** A response as it is stored: its ids cut, with a mark if something was cut off. */
export function cutResponse(response: ModelResponse, maxLength: number | null): ModelResponse {
  if (maxLength === null) return response;
  const { overlong_prompt: _, is_truncated, ...ids } = cutTokens(response, maxLength);
  return { ...response, ...ids, ...(is_truncated && { tokens_cut: true }) };
}

/** `previous`: the ids of the turn that it continues (prompt, then completion). Null if the engine sent no ids. */
export function packTokens(previous: readonly number[], response: ModelResponse): TurnTokens | null {
  const { prompt_ids, completion_ids, completion_logprobs } = response;
  if (prompt_ids === null || completion_ids === null) return null;
  const continues = previous.length <= prompt_ids.length && previous.every((id, index) => id === prompt_ids[index]);
  const suffix = continues ? prompt_ids.slice(previous.length) : prompt_ids;
  return {
    prompt_suffix_ids: base64OfInt32s(suffix),
    forked: !continues,
    completion_ids: base64OfInt32s(completion_ids),
    completion_logprobs:
      completion_logprobs === null ? null : base64(new Uint8Array(Float32Array.from(completion_logprobs).buffer)),
    prompt_length: prompt_ids.length,
    completion_length: completion_ids.length,
  };
}

/** A turn with its tokens. Without a prompt it continues the turn before. */
interface Tokenised {
  readonly tokens: TurnTokens | null;
  readonly prompt?: Pick<StoredPrompt, "after">;
}

/** Prompt and sampled ids of turn `index`: the ids of a turn that continues it are stored as a suffix of them. */
export function idsAfter(turns: readonly Tokenised[], index: number): number[] {
  const parts: Int32Array[] = [];
  let at = index;
  for (;;) {
    const { tokens = null, prompt } = turns[at] ?? {};
    if (tokens === null) break;
    parts.push(int32s(tokens.completion_ids), int32s(tokens.prompt_suffix_ids));
    if (tokens.forked) break;
    at = continuedBy(at, prompt);
  }
  return parts.reverse().flatMap((part) => Array.from(part));
}

/** Ids as a packed blob. */
export function base64OfInt32s(ids: readonly number[]): string {
  return base64(new Uint8Array(Int32Array.from(ids).buffer));
}

/** The ids of a packed blob. */
export function int32s(blob: string): Int32Array<ArrayBuffer> {
  return new Int32Array(bytes(blob).buffer);
}

/** The logprobs of a packed blob. */
export function float32s(blob: string): Float32Array<ArrayBuffer> {
  return new Float32Array(bytes(blob).buffer);
}

/** Bytes encoded at once: a string that grows digit by digit would keep every intermediate string. */
const BLOCK_BYTES = 3 * 4096;
const PAD = "=".charCodeAt(0);

function base64(data: Uint8Array): string {
  const digits = new Uint16Array((BLOCK_BYTES / 3) * 4);
  const blocks: string[] = [];
  for (let from = 0; from < data.length; from += BLOCK_BYTES) {
    const written = writeDigits(data.subarray(from, from + BLOCK_BYTES), digits);
    blocks.push(String.fromCharCode(...digits.subarray(0, written)));
  }
  return blocks.join("");
}

/** Writes the base64 digits of `data` and returns their number. */
function writeDigits(data: Uint8Array, digits: Uint16Array): number {
  let written = 0;
  for (let at = 0; at < data.length; at += 3) {
    const [a = 0, b, c] = [data[at], data[at + 1], data[at + 2]];
    const word = (a << 16) | ((b ?? 0) << 8) | (c ?? 0);
    digits[written] = digit(word >> 18);
    digits[written + 1] = digit(word >> 12);
    digits[written + 2] = b === undefined ? PAD : digit(word >> 6);
    digits[written + 3] = c === undefined ? PAD : digit(word);
    written += 4;
  }
  return written;
}

function digit(value: number): number {
  return BASE64.charCodeAt(value & 63);
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  let digits = text.length;
  while (text.charAt(digits - 1) === "=") digits -= 1;
  const data = new Uint8Array(Math.floor((digits * 6) / 8));
  let word = 0;
  let bits = 0;
  let at = 0;
  for (let digit = 0; digit < digits; digit += 1) {
    word = (word << 6) | (DIGITS[text.charCodeAt(digit)] ?? 0);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      data[at] = (word >> bits) & 255;
      at += 1;
    }
  }
  return data;
}
