/**
 * The run another is compared with: named by its id, or the newest completed one of the same environment that carries
 * some metadata. Which one it is and why is always said: a baseline picked in silence is often the wrong one.
 */
import type { RunView } from "../../contract/run.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { usageError } from "../exit.ts";
import { hasEnded } from "../follow.ts";
import { timeText } from "../terminal/format.ts";

export type BaselineArgument = { readonly run: string } | { readonly metadata: Readonly<Record<string, string>> };

export interface Baseline {
  readonly id: string;
  /** Why this one. */
  readonly why: string;
}

/** One run's id, or `k=v` pairs that a run must all carry. Throws a usage error. */
export function baselineArgument(
  given: readonly string[],
  pairs: () => Record<string, string>,
): BaselineArgument | null {
  const [first, ...more] = given;
  if (first === undefined) return null;
  if (first.includes("=")) return { metadata: pairs() };
  if (more.length === 0) return { run: first };
  throw usageError(`--baseline: one run, or k=v pairs, not ${given.join(", ")}`, "baseline");
}

/** `environment`: its id. `apart`: a run that is no baseline of itself. Throws a usage error when there is none. */
export async function findBaseline(
  client: RollcallClient,
  argument: BaselineArgument,
  { environment, apart }: { readonly environment: string; readonly apart: string | null },
): Promise<Baseline> {
  if ("run" in argument) return named(await client.getRun(argument.run));
  const { metadata } = argument;
  const carried = Object.entries(metadata).map(([key, value]) => `${key}=${value}`);
  const found = await newestCompleted(client, { environment, metadata }, apart);
  const wanted = `completed run of ${environment} with ${carried.join(", ")}`;
  if (found === null) {
    const first = carried.map((pair) => ` --metadata ${pair}`).join("");
    throw usageError(
      `--baseline: there is no ${wanted}; make the first one without --baseline, with${first}`,
      "baseline",
    );
  }
  return { id: found.id, why: `the newest ${wanted}, of ${timeText(found.created_at)}` };
}

/** What a list says of a run that has just ended may lag behind: such a one is looked at itself. */
async function newestCompleted(
  client: RollcallClient,
  query: { readonly environment: string; readonly metadata: Readonly<Record<string, string>> },
  apart: string | null,
): Promise<RunView | null> {
  for await (const listed of client.runs(query)) {
    // A run that goes on from the middle of another's rollout plays no tasks from their start.
    if (listed.id === apart || listed.forked_from !== null) continue;
    const run = hasEnded(listed) ? listed : await client.getRun(listed.id);
    if (run.status === "completed") return run;
  }
  return null;
}

function named(run: RunView): Baseline {
  if (hasEnded(run)) return { id: run.id, why: `as named, of ${timeText(run.created_at)}` };
  throw usageError(`--baseline: ${run.id} has not ended: it is ${run.status}`, "baseline");
}
