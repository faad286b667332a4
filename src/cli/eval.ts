/** `rollcall eval`: makes a run (or picks one up), follows it to its end, and says how it went. */
import type { RunView } from "../core/run.ts";
import { type Connection, connect } from "./connect.ts";
import { Display } from "./display.ts";
import { EVAL_HELP, type EvalArguments, parseEvalArguments } from "./eval-arguments.ts";
import { completeRequest } from "./eval-request.ts";
import { CommandError, EXIT, type ExitCode, unreachable } from "./exit.ts";
import { followRun } from "./follow.ts";
import { sum } from "./format.ts";
import { catchInterrupts } from "./interrupt.ts";
import { prepareFolder, writeResults } from "./results-folder.ts";
import { evalSummary } from "./summary.ts";
import { resultsTable } from "./table.ts";
import { printJson, type Terminal, terminal } from "./terminal.ts";

/** A cancelled run ends once the calls in flight are aborted; this is ample. */
const CANCELLED_WITHIN_MS = 30_000;

export async function evalCommand(argv: readonly string[]): Promise<ExitCode> {
  const args = parseEvalArguments(argv);
  const term = terminal(args.json);
  if (args.help) {
    term.print(EVAL_HELP);
    return EXIT.good;
  }
  if (args.outputDir !== null) prepareFolder(args.outputDir);
  using interrupt = catchInterrupts();
  const timeout = args.timeoutMs === null ? null : AbortSignal.timeout(args.timeoutMs);
  const connection = await connect({ ...args, say: term.say });
  try {
    const started = performance.now();
    const run = await startedRun(args, connection, term);
    const ended = await toTheEnd(run, connection, term, { interrupt: interrupt.signal, timeout });
    const seconds = (performance.now() - started) / 1000;
    const path =
      args.outputDir === null ? null : await writeResults(connection.client, ended, args.outputDir);
    term.print(resultsTable([ended]));
    if (path !== null) term.print(`Results: ${path}`);
    if (args.json) printJson(evalSummary(ended, seconds, path));
    return exitOf(ended, args);
  } finally {
    await connection.close();
  }
}

async function startedRun(
  args: EvalArguments,
  connection: Connection,
  term: Terminal,
): Promise<RunView> {
  if (args.resume !== null) return connection.client.getRun(args.resume);
  const request = await completeRequest(args.draft, connection, term.say);
  const run = await connection.client.createRun(request);
  term.say(`Run ${run.id} on ${connection.url}`);
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
  { interrupt, timeout }: Ends,
): Promise<RunView> {
  const display = new Display(term, () => performance.now());
  const signal = timeout === null ? interrupt : AbortSignal.any([interrupt, timeout]);
  const follow = (until: AbortSignal) =>
    followRun(connection.client, run.id, { signal: until, onProgress: (it) => display.show(it) });
  const lost = connection.lost.then((reason): never => {
    throw unreachable(`the platform is gone; ${howToGoOn(run, connection)}`, reason);
  });
  try {
    return await Promise.race([follow(signal), lost]);
  } catch (error) {
    if (interrupt.aborted) throw interrupted(run, connection);
    if (timeout === null || !timeout.aborted) throw error;
    term.say("The time is up: cancelling the run.");
    await connection.client.cancelRun(run.id);
    return await follow(AbortSignal.any([interrupt, AbortSignal.timeout(CANCELLED_WITHIN_MS)]));
  }
}

function interrupted(run: RunView, connection: Connection): CommandError {
  return new CommandError(EXIT.interrupted, {
    code: "interrupted",
    message: `interrupted; ${howToGoOn(run, connection)}`,
    type: "interrupted",
  });
}

function howToGoOn(run: RunView, { kind, url }: Connection): string {
  const again = `rollcall eval --resume ${run.id}`;
  switch (kind) {
    case "remote":
      return `run ${run.id} goes on; follow it with: ${again} --platform ${url}`;
    case "running":
      return `run ${run.id} goes on; follow it with: ${again}`;
    case "embedded":
      return `run ${run.id} is kept in the state directory and goes on with: ${again}`;
    case "ephemeral":
      return `run ${run.id} went with its ephemeral platform; without --ephemeral it can go on`;
  }
}

function exitOf(run: RunView, args: EvalArguments): ExitCode {
  if (run.error?.code === "too_few_scored" && args.gated) return EXIT.gate;
  if (run.status !== "completed") return EXIT.bad;
  const bad = sum(run.counts.failed) + sum(run.counts.unscored);
  return args.failOnError && bad > 0 ? EXIT.bad : EXIT.good;
}
