/** What texts and rollouts take: bytes of UTF-8, and UTF-16 units of JSON. */
import type { JsonObject } from "../contract/json.ts";
import type { Messages } from "../contract/messages.ts";
import { packState, type Turn } from "../contract/trajectory.ts";

/** How many bytes a text takes as UTF-8. Counted by hand: core has no TextEncoder. */
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

/** Whether a text takes more than `limit` bytes; most are settled by their length alone. */
export function exceedsUtf8(text: string, limit: number): boolean {
  return text.length > limit || (text.length * 3 > limit && utf8Bytes(text) > limit);
}

/**
 * What a rollout's turns take in storage, counted as they come: UTF-16 units of their JSON. Whoever plays, stores,
 * folds or scores a rollout holds all of it at once, so it has a most (`LIMITS.rolloutCharacters`).
 */
export function sizeOf(value: object): number {
  return JSON.stringify(value).length;
}

/** What messages take, about: a long text is not made JSON of for it. */
export function charactersOf(messages: Messages): number {
  const sizes = messages.map((message) =>
    typeof message.content === "string" ? message.content.length : sizeOf(message),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** What the state after the last turn takes, as a trajectory keeps it. */
export function stateSize(
  { turns, initial_state }: { readonly turns: readonly Turn[]; readonly initial_state: JsonObject },
  state: JsonObject,
): number {
  const last = turns.at(-1);
  if (last === undefined) return 0;
  return sizeOf(packState(turns.at(-2)?.state_after ?? initial_state, state, last.index));
}
