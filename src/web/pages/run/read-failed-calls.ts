/** Reads failed tool calls of rollouts, a few at once. */
import { api } from "../../client.ts";
import { type FailedCall, failedCallsOf } from "./failed-calls.ts";

/** Reads one turn and what follows it. */
export async function readFailedCalls(
  rollout: string,
  turn: number,
  signal: AbortSignal,
): Promise<readonly FailedCall[]> {
  const { turns } = api.rollouts;
  const query = { limit: 2, ...(turn > 0 && { after: turn - 1 }) };
  const { data, n_turns } = await turns.list(rollout, query, { signal });
  const [one, next] = data;
  if (one === undefined) return [];
  if (turn + 1 >= n_turns) {
    const { final_env_response } = await api.rollouts.head(rollout, { signal });
    return failedCallsOf(rollout, one, final_env_response);
  }
  // A page of turns ends early if they are long.
  const after = next ?? (await turns.list(rollout, { limit: 1, after: turn }, { signal })).data[0];
  return failedCallsOf(rollout, one, after?.prompt.after === undefined ? (after?.prompt.append ?? []) : []);
}

const AT_ONCE = 4;

/** Calls `read` for each, a few at once; returns the results in the order of the items. */
export async function readEach<Item, Result>(
  items: readonly Item[],
  read: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Map<number, Result>();
  const left = items.entries();
  const work = async () => {
    for (const [at, item] of left) results.set(at, await read(item));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return items.flatMap((_, at) => results.get(at) ?? []);
}
