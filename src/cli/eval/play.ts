/**
 * Plays a run for a command: starts it from flags, follows it to its end, and leaves it running when the command is
 * interrupted.
 */
import type { RolloutFinished, RunView } from "../../contract/run.ts";
import type { Connection } from "../connect.ts";
import { datasetInRequest, withUploadedRows } from "../dataset-argument.ts";
import { interruption, unreachable } from "../exit.ts";
import { followRun } from "../follow.ts";
import { type Ends, firstOf } from "../interrupt.ts";
import { Display } from "../terminal/display.ts";
import { type EndedRun, RewardTally } from "../terminal/results.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { RunArguments } from "./arguments.ts";
import { reasonsOf } from "./reasons.ts";
import { completeRequest } from "./request.ts";

/** A cancelled run ends once the calls in flight are aborted; this is more than enough. */
const CANCELLED_WITHIN_MS = 30_000;

/** Starts the run that the flags describe; uploads its rows if they are too many for the request. */
export async function startRun(
  args: Pick<RunArguments, "draft" | "dataset" | "force">,
  connection: Connection,
  { log }: Terminal,
  signal: AbortSignal,
): Promise<RunView> {
  const { client } = connection;
  const { dataset } = args;
  const draft = dataset === null ? args.draft : { ...args.draft, dataset: datasetInRequest(dataset) };
  const complete = await completeRequest(draft, connection, { force: args.force, log });
  const request = await withUploadedRows(complete, dataset, { client, log, signal });
  const run = await client.runs.create(request);
  log(`Run ${run.id} on ${connection.url}`);
  return run;
}

/**
 * Follows a run to its end. After --timeout it cancels the run. After an interruption the run continues, and the error
 * says how to follow it. `command` resumes it, without `--resume`; `program`: what comes after all flags.
 */
export async function followToEnd(
  run: RunView,
  connection: Connection,
  term: Terminal,
  ends: Ends,
  command: string,
  program = "",
): Promise<EndedRun> {
  const { interrupt, timeout } = ends;
  const display = new Display(term, () => performance.now());
  const follow = async (signal: AbortSignal) => {
    // Every event comes again when the run is followed again.
    const tally = new RewardTally();
    const onFinished = ({ reward }: RolloutFinished) => tally.add(reward);
    const onProgress = (it: RunView) => display.show(it);
    const ended = await followRun(connection.client, run.id, { signal, onProgress, onFinished });
    return { run: ended, tally, reasons: await reasonsOf(connection.client, ended, signal) };
  };
  const goOn = howToGoOn(run, connection, command, program);
  const lost = connection.lost.then((reason): never => {
    throw unreachable(`the platform has stopped; ${goOn}`, reason);
  });
  try {
    return await Promise.race([follow(firstOf(ends)), lost]);
  } catch (error) {
    if (interrupt.aborted) throw interruption(`; ${goOn}`);
    if (timeout === null || !timeout.aborted) throw error;
    term.log("Timeout: cancelling the run.");
    await connection.client.runs.cancel(run.id);
    return await follow(AbortSignal.any([interrupt, AbortSignal.timeout(CANCELLED_WITHIN_MS)]));
  }
}

function howToGoOn(run: RunView, { kind, flags, environment }: Connection, command: string, program: string): string {
  // A platform that is booted again needs the code of the environment again. A running one has it, and must not load code
  // that was changed meanwhile: the run would end.
  const own = environment?.own && kind === "embedded" ? ` ${environment.reference}` : "";
  const again = `${command}${own} --resume ${run.id}${flags}${program}`;
  switch (kind) {
    case "remote":
    case "running":
      return `run ${run.id} continues; follow it with: ${again}`;
    case "embedded":
      return `run ${run.id} is saved in the state directory; continue it with: ${again}`;
    case "ephemeral":
      return `run ${run.id} was deleted with its temporary platform`;
  }
}
