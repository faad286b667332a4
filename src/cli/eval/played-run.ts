/** A run as commands make it: started from flags, followed to its end, and kept when the command is interrupted. */
import type { RunView } from "../../contract/run.ts";
import type { Connection } from "../connect.ts";
import { type DatasetArgument, datasetInRequest, withUploadedRows } from "../dataset-argument.ts";
import { interruption, unreachable } from "../exit.ts";
import { followRun } from "../follow.ts";
import { firstOf } from "../interrupt.ts";
import { Display } from "../terminal/display.ts";
import type { RewardTally } from "../terminal/results.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { DraftRequest } from "./arguments.ts";
import { completeRequest } from "./request.ts";

/** A cancelled run ends once the calls in flight are aborted; this is ample. */
const CANCELLED_WITHIN_MS = 30_000;

export interface RunArguments {
  readonly draft: DraftRequest;
  readonly dataset: DatasetArgument | null;
  readonly force: boolean;
}

export async function startedRun(
  args: RunArguments,
  connection: Connection,
  { say }: Terminal,
  signal: AbortSignal,
): Promise<RunView> {
  const { client } = connection;
  const { dataset } = args;
  const draft = dataset === null ? args.draft : { ...args.draft, dataset: datasetInRequest(dataset) };
  const complete = await completeRequest(draft, connection, { force: args.force, say });
  const request = await withUploadedRows(complete, dataset, { client, say, signal });
  const run = await client.createRun(request);
  say(`Run ${run.id} on ${connection.url}`);
  return run;
}

export interface Ends {
  readonly interrupt: AbortSignal;
  readonly timeout: AbortSignal | null;
  /** The command that goes on with the run, but for `--resume`. */
  readonly again: string;
}

/** The ended run. Its time over, it is cancelled; interrupted, it goes on and the error says how to follow it. */
export async function playedRun(
  run: RunView,
  connection: Connection,
  term: Terminal,
  tally: RewardTally,
  { interrupt, timeout, again }: Ends,
): Promise<RunView> {
  const display = new Display(term, () => performance.now());
  const signal = firstOf(interrupt, timeout);
  const follow = (until: AbortSignal) => {
    // Every event comes again.
    tally.clear();
    return followRun(connection.client, run.id, {
      signal: until,
      onProgress: (it) => display.show(it),
      onFinished: ({ reward }) => tally.add(reward),
    });
  };
  const goOn = howToGoOn(run, connection, again);
  const lost = connection.lost.then((reason): never => {
    throw unreachable(`the platform is gone; ${goOn}`, reason);
  });
  try {
    return await Promise.race([follow(signal), lost]);
  } catch (error) {
    if (interrupt.aborted) throw interruption(`; ${goOn}`);
    if (timeout === null || !timeout.aborted) throw error;
    term.say("The time is up: cancelling the run.");
    await connection.client.cancelRun(run.id);
    return await follow(AbortSignal.any([interrupt, AbortSignal.timeout(CANCELLED_WITHIN_MS)]));
  }
}

function howToGoOn(run: RunView, { kind, url, environment }: Connection, command: string): string {
  // A platform that is booted again needs the code again.
  const own = environment?.own ? ` ${environment.reference}` : "";
  const again = `${command}${own} --resume ${run.id}`;
  switch (kind) {
    case "remote":
      return `run ${run.id} goes on; follow it with: ${again} --platform ${url}`;
    case "running":
      return `run ${run.id} goes on; follow it with: ${again}`;
    case "embedded":
      return `run ${run.id} is kept in the state directory and goes on with: ${again}`;
    case "ephemeral":
      return `run ${run.id} went with its throw-away platform`;
  }
}
