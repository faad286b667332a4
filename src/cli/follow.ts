/** Follows a run to its end. The event stream says when to read the run; the output always shows the run as read. */
import { setTimeout as sleep } from "node:timers/promises";
import { isTerminalEvent } from "../contract/event-names.ts";
import type { RolloutFinished, RunView } from "../contract/run.ts";
import type { RollcallClient } from "../sdk/client.ts";
import { ApiRequestError } from "../sdk/request-error.ts";

/** The run is read at most once in this time while it is in progress. */
const READ_EVERY_MS = 500;
const FINAL_READS = 60;

interface FollowOptions {
  readonly signal: AbortSignal;
  /** The last call has the ended run. */
  readonly onProgress: (run: RunView) => void;
  /** Called once for each rollout, including those that ended earlier, as far back as the platform keeps events. */
  readonly onFinished?: (rollout: RolloutFinished) => void;
}

/** The ended run. Throws the signal's reason when it is aborted; the run then continues. */
export async function followRun(
  client: RollcallClient,
  runId: string,
  { signal, onProgress, onFinished }: FollowOptions,
): Promise<RunView> {
  let readAt = 0;
  for await (const { event, data } of client.runs.events(runId, { signal })) {
    if (isTerminalEvent(event)) break;
    if (event === "rollout.finished") onFinished?.(data as RolloutFinished);
    const now = performance.now();
    if (now - readAt < READ_EVERY_MS) continue;
    readAt = now;
    const run = await ifUp(() => client.runs.get(runId));
    if (run !== null) onProgress(run);
  }
  const ended = await readEnded(client, runId, signal);
  onProgress(ended);
  return ended;
}

async function readEnded(client: RollcallClient, runId: string, signal: AbortSignal): Promise<RunView> {
  for (let reads = 1; ; reads += 1) {
    const run = await ifUp(() => client.runs.get(runId));
    if (run !== null && hasEnded(run)) return run;
    if (reads >= FINAL_READS) throw new Error(`the events of ${runId} report its end, but it reads as running`);
    await sleep(READ_EVERY_MS, undefined, { signal });
  }
}

export function hasEnded(run: RunView): boolean {
  return run.status === "completed" || run.status === "failed" || run.status === "cancelled";
}

/** Null while the platform restarts; the caller decides when to give up. */
export async function ifUp<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof TypeError) return null;
    if (error instanceof ApiRequestError && error.status >= 500) return null;
    throw error;
  }
}
