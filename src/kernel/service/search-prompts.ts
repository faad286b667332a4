/**
 * The texts that a search covers besides the rows of a run: the beginning of each group's first prompt. Prompts are in
 * trajectories, so they are read only when a run is searched, some with each search, and the run's object stores them.
 * The reply says how far they have been read.
 */
import { LIMITS } from "../../contract/limits.ts";
import { textOf } from "../../contract/messages.ts";
import type { Scope } from "../../contract/scope.ts";
import { cutBefore } from "../../contract/shown-text.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { isolateMemory } from "../kit/isolate-memory.ts";
import type { RunRpc } from "../messages/rpc.ts";
import { readPage } from "./read-rollouts.ts";

/** Slices of ended rollouts that each request reads; a slice has as many as a page of results. */
const SLICES = 3;
const SLICE = 1000;

export interface Searched {
  readonly rollouts: number;
  readonly of: number;
}

/** Reads more of a run's prompts. Returns for how many of its ended rollouts they are stored. Null: the run is lost. */
export async function searchPrompts(
  env: Env,
  address: { readonly scope: Scope; readonly run_id: string },
  object: RunRpc,
): Promise<Searched | null> {
  let state = await object.look("searched", null);
  for (let slice = 0; state !== null && slice < SLICES; slice += 1) {
    if (!state.open || state.upto >= state.of) break;
    // A slice of trajectories is as large as a page of results.
    const { pages, pageMakingBytes } = isolateMemory(env);
    const reservation = pages.take(address.scope.orgId, Date.now(), pageMakingBytes);
    if (reservation === null) break;
    try {
      const more = await readSlice(env, address, object, state.upto);
      if (more === null) break;
      state = await object.look("searched", more);
    } finally {
      reservation.leave();
    }
  }
  return state && { rollouts: state.upto, of: state.of };
}

/** Null if trajectories were moved meanwhile: the next request finds them. */
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

/** The user's messages come first, because a long system prompt is the same in all groups. */
function beginningOf({ prompt }: Trajectory): string {
  const users = prompt.filter(({ role }) => role === "user");
  const text = [...users, ...prompt.filter(({ role }) => role !== "user")].map(textOf).join("\n");
  return text.slice(0, cutBefore(text, LIMITS.searchedCharacters));
}
