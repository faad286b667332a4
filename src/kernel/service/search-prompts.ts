/**
 * What a text is searched in beside the rows of a run: the beginning of each group's first prompt. Prompts stand in
 * trajectories, so those of a run are read only once somebody searches it, some with each such request, and the run keeps
 * them. The reply says how far they are.
 */
import { LIMITS } from "../../contract/limits.ts";
import { textOf } from "../../contract/messages.ts";
import type { Scope } from "../../contract/scope.ts";
import { cutBefore } from "../../contract/shown-text.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { Places } from "../kit/places.ts";
import type { RunRpc } from "../messages/rpc.ts";
import { readPage } from "./read-rollouts.ts";

/** Of ended rollouts, with each request; a slice holds what a page of results does. */
const SLICES = 3;
const SLICE = 1000;
const SILENCE_MS = 60_000;
/** Searches that read prompts in this process, each with a slice of trajectories in memory: one of an organisation. */
const reading = new Places(2, SILENCE_MS);

export interface Searched {
  readonly rollouts: number;
  readonly of: number;
}

/** Reads some more of a run's prompts, and says of how many of its ended rollouts they are known. Null: the run is lost. */
export async function searchPrompts(
  env: Env,
  address: { readonly scope: Scope; readonly run_id: string },
  object: RunRpc,
): Promise<Searched | null> {
  let state = await object.look("searched", null);
  for (let slice = 0; state !== null && slice < SLICES; slice += 1) {
    if (!state.open || state.upto >= state.of) break;
    const place = reading.take(address.scope.orgId, Date.now());
    if (place === null) break;
    try {
      const more = await readSlice(env, address, object, state.upto);
      if (more === null) break;
      state = await object.look("searched", more);
    } finally {
      place.leave();
    }
  }
  return state && { rollouts: state.upto, of: state.of };
}

/** Null where trajectories moved meanwhile: the next request finds them. */
async function readSlice(
  env: Env,
  address: { readonly scope: Scope; readonly run_id: string },
  object: RunRpc,
  after: number,
) {
  const finished = await object.finished(after, SLICE, null);
  const read = finished && (await readPage(env, address, finished));
  const upto = read?.at(-1)?.entry.finish_seq ?? null;
  if (read === null || upto === null) return null;
  const texts = new Map<number, string>();
  for (const { entry, trajectory } of read) {
    if (trajectory === null || texts.has(entry.group_index)) continue;
    texts.set(entry.group_index, beginningOf(trajectory));
  }
  return { after, upto, texts: [...texts].map(([group, text]) => ({ group, text })) };
}

/** What the user says comes first: a long system prompt is the same in all of them. */
function beginningOf({ prompt }: Trajectory): string {
  const users = prompt.filter(({ role }) => role === "user");
  const text = [...users, ...prompt.filter(({ role }) => role !== "user")].map(textOf).join("\n");
  return text.slice(0, cutBefore(text, LIMITS.searchedCharacters));
}
