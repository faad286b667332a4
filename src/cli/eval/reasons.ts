/** Why rollouts of an ended run have no score, in the words of what failed: an endpoint, a judge, code, a time limit. */

import type { RunView } from "../../contract/run.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { ApiRequestError } from "../../sdk/request-error.ts";

/** What rollouts of one class said. */
export interface Reason {
  readonly outcome: "failed" | "unscored";
  /** The error class, or the cause of a missing score. */
  readonly cause: string;
  /** The number of its rollouts. */
  readonly n: number;
  /** The most frequent message of those that were read; null if they have none. */
  readonly message: string | null;
  /** How many of the read rollouts had other messages. */
  readonly others: number;
}

/** The causes that are looked up, the most frequent first, and the rollouts read of each: their first page. */
const CAUSES = 5;
const ROLLOUTS = 100;

export async function reasonsOf(
  client: RollcallClient,
  { id, counts }: Pick<RunView, "id" | "counts">,
  signal?: AbortSignal,
): Promise<Reason[]> {
  const causes = (["failed", "unscored"] as const)
    .flatMap((outcome) => Object.entries(counts[outcome]).map(([cause, n]) => ({ outcome, cause, n })))
    .sort((a, b) => b.n - a.n)
    .slice(0, CAUSES);
  return await Promise.all(
    causes.map(async (cause) => ({ ...cause, ...mostFrequent(await readMessages(client, id, cause, signal)) })),
  );
}

/** None if they cannot be read: a key may read runs without rollouts, and the result is worth more than its reasons. */
async function readMessages(...args: Parameters<typeof messagesOf>): Promise<string[]> {
  try {
    return await messagesOf(...args);
  } catch (error) {
    const [, , , signal] = args;
    if (!signal?.aborted && (error instanceof ApiRequestError || error instanceof TypeError)) return [];
    throw error;
  }
}

async function messagesOf(
  client: RollcallClient,
  id: string,
  { outcome, cause }: Pick<Reason, "outcome" | "cause">,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const options = signal === undefined ? {} : { signal };
  const filter = `outcome:${outcome} error:${cause}`;
  const { data } = await client.rollouts.list(id, { filter, limit: ROLLOUTS }, options);
  if (outcome === "failed") return data.flatMap(({ error }) => (error === null ? [] : [error.message]));
  // Errors of scoring are only in the rollout itself.
  const [first] = data;
  if (first === undefined) return [];
  const { scoring_errors } = await client.rollouts.head(first.id, options);
  return scoring_errors.slice(0, 1).map(({ function: name, error }) => `${name}: ${error}`);
}

function mostFrequent(messages: readonly string[]): Pick<Reason, "message" | "others"> {
  const all = [...Map.groupBy(messages, (message) => message)].sort(([, a], [, b]) => b.length - a.length);
  const [most] = all;
  if (most === undefined) return { message: null, others: 0 };
  return { message: most[0], others: messages.length - most[1].length };
}
