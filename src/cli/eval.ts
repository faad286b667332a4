/** `rollcall eval`: makes a run (or picks one up), follows it to its end, and says how it went. */
import type { RunView } from "../core/run.ts";
import type { RollcallClient } from "../sdk/client.ts";
import { type Connection, connect } from "./connect.ts";
import { datasetInRequest, withUploadedRows } from "./dataset-argument.ts";
import { Display } from "./display.ts";
import { type EvalArguments, parseEvalArguments } from "./eval-arguments.ts";
import { completeRequest } from "./eval-request.ts";
import { EXIT, type ExitCode, interruption, unreachable } from "./exit.ts";
import { followRun } from "./follow.ts";
import { sum } from "./format.ts";
import { RewardTally } from "./histogram.ts";
import { catchInterrupts } from "./interrupt.ts";
import { prepareFolder, writeResults } from "./results-folder.ts";
import { evalSummary } from "./summary.ts";
import { resultsText } from "./table.ts";
import { printJson, type Terminal, terminal } from "./terminal.ts";

/** A cancelled run ends once the calls in flight are aborted; this is ample. */
const CANCELLED_WITHIN_MS = 30_000;

export async function evalCommand(argv: readonly string[]): Promise<ExitCode> {
  const args = parseEvalArguments(argv);
  const term = terminal(args.json);
  if (args.outputDir !== null) prepareFolder(args.outputDir);
  using interrupt = catchInterrupts();
  const timeout = args.timeoutMs === null ? null : AbortSignal.timeout(args.timeoutMs);
  const connection = await connect({
    ...args,
    environment: args.draft.environment,
    say: term.say,
  });
  try {
    const started = performance.now();
    const run = await startedRun(args, connection, term, interrupt.signal);
    const tally = new RewardTally();
    const ends = { interrupt: interrupt.signal, timeout };
    const ended = await toTheEnd(run, connection, term, tally, ends);
    const seconds = (performance.now() - started) / 1000;
    const path = await writtenResults(connection.client, ended, args);
    term.print(resultsText([{ run: ended, tally }], term));
    if (path !== null) term.print(`Results: ${path}`);
    if (args.json) printJson(evalSummary(ended, seconds, path));
    return exitOf(ended, args);
  } finally {
    await connection.close();
  }
}

async function writtenResults(
  client: RollcallClient,
  run: RunView,
  { outputDir, stateColumns }: EvalArguments,
): Promise<string | null> {
  return outputDir === null ? null : writeResults(client, run, outputDir, stateColumns);
}

async function startedRun(
  args: EvalArguments,
  connection: Connection,
  { say }: Terminal,
  signal: AbortSignal,
): Promise<RunView> {
  const { client } = connection;
  if (args.resume !== null) return client.getRun(args.resume);
  const { dataset } = args;
  const draft =
    dataset === null ? args.draft : { ...args.draft, dataset: datasetInRequest(dataset) };
  const complete = await completeRequest(draft, connection, { force: args.force, say });
  const request = await withUploadedRows(complete, dataset, { client, say, signal });
  const run = await client.createRun(request);
  say(`Run ${run.id} on ${connection.url}`);
  return run;
}

interface Ends {
  readonly interrupt: AbortSignal;
  readonly timeout: AbortSignal | null;
}

async function toTheEnd(
  run: RunView,
  connection: Connection,
  term: Terminal,
  tally: RewardTally,
  { interrupt, timeout }: Ends,
): Promise<RunView> {
  const display = new Display(term, () => performance.now());
  const signal = timeout === null ? interrupt : AbortSignal.any([interrupt, timeout]);
  const follow = (until: AbortSignal) => {
    // Every event comes again.
    tally.clear();
    return followRun(connection.client, run.id, {
      signal: until,
      onProgress: (it) => display.show(it),
      onFinished: ({ reward }) => tally.add(reward),
    });
  };
  const lost = connection.lost.then((reason): never => {
    throw unreachable(`the platform is gone; ${howToGoOn(run, connection)}`, reason);
  });
  try {
    return await Promise.race([follow(signal), lost]);
  } catch (error) {
    if (interrupt.aborted) throw interruption(`; ${howToGoOn(run, connection)}`);
    if (timeout === null || !timeout.aborted) throw error;
    term.say("The time is up: cancelling the run.");
    await connection.client.cancelRun(run.id);
    return await follow(AbortSignal.any([interrupt, AbortSignal.timeout(CANCELLED_WITHIN_MS)]));
  }
}

function howToGoOn(run: RunView, { kind, url, environment }: Connection): string {
  // A platform that is booted again needs the code again.
  const own = environment?.own ? ` ${environment.reference}` : "";
  const again = `rollcall eval${own} --resume ${run.id}`;
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

function exitOf(run: RunView, args: EvalArguments): ExitCode {
  if (run.error?.code === "too_few_scored" && args.gated) return EXIT.gate;
  if (run.status !== "completed") return EXIT.bad;
  const bad = sum(run.counts.failed) + sum(run.counts.unscored);
  return args.failOnError && bad > 0 ? EXIT.bad : EXIT.good;
}
