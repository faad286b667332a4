/** Sizes of texts and rollouts: bytes of UTF-8, and UTF-16 units of JSON. */
import type { JsonObject } from "../contract/json.ts";
import type { Messages } from "../contract/messages.ts";
import { packState, type Turn } from "../contract/trajectory.ts";

/** The size of a text in bytes of UTF-8. Counted by hand: core has no TextEncoder. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x80) bytes += 1;
    else if (code < 0x800) bytes += 2;
    else bytes += code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

/** Whether a text has more than `limit` bytes of UTF-8; the length alone decides for most texts. */
export function exceedsUtf8(text: string, limit: number): boolean {
  return text.length > limit || (text.length * 3 > limit && utf8Bytes(text) > limit);
}

/**
 * The storage size of a rollout's turns, counted as they come: UTF-16 units of their JSON. Code that plays, stores,
 * compacts or scores a rollout has all of it in memory, so the size is limited (`LIMITS.rolloutCharacters`).
 */
export function sizeOf(value: object): number {
  return JSON.stringify(value).length;
}

/** The approximate size of messages, without converting long texts to JSON. */
export function charactersOf(messages: Messages): number {
  const sizes = messages.map((message) =>
    typeof message.content === "string" ? message.content.length : sizeOf(message),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** The size of the state after the last turn, as a trajectory stores it. */
export function stateSize(
  { turns, initial_state }: { readonly turns: readonly Turn[]; readonly initial_state: JsonObject },
  state: JsonObject,
): number {
  const last = turns.at(-1);
  if (last === undefined) return 0;
  return sizeOf(packState(turns.at(-2)?.state_after ?? initial_state, state, last.index));
}
