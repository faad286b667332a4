/** `rollcall eval`: makes a run (or picks one up), follows it to its end, and says how it went. */
import type { RunView } from "../../contract/run.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { checkFolderOf } from "../argument-values.ts";
import { type Connection, connect } from "../connect.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { catchInterrupts, firstOf } from "../interrupt.ts";

import { RewardTally, resultsText } from "../terminal/results.ts";
import { printJson, type Terminal, terminal } from "../terminal/terminal.ts";
import { type DraftRequest, type EvalArguments, parseEvalArguments } from "./arguments.ts";

import { type Baseline, exitOfGates, findBaseline, type Judgement, judge } from "./gates.ts";
import { writeJunit } from "./junit.ts";
import { playedRun, startedRun } from "./played-run.ts";
import { prepareFolder, writeResults } from "./results-folder.ts";
import { resumedRun } from "./resume.ts";
import { comparisonText, evalSummary, verdictsText } from "./summary.ts";

export async function evalCommand(argv: readonly string[]): Promise<ExitCode> {
  const args = parseEvalArguments(argv);
  const term = terminal(args.json);
  if (args.outputDir !== null) prepareFolder(args.outputDir);
  if (args.junit !== null) checkFolderOf(args.junit, "junit");
  using interrupt = catchInterrupts();
  const timeout = args.timeoutMs === null ? null : AbortSignal.timeout(args.timeoutMs);
  const connection = await connect({
    ...args,
    environment: args.draft.environment,
    signal: firstOf(interrupt.signal, timeout),
    say: term.say,
  });
  try {
    const started = performance.now();
    const { run, baseline } = await begun(args, connection, term, interrupt.signal);
    const tally = new RewardTally();
    const ends = { interrupt: interrupt.signal, timeout };
    const ended = await playedRun(run, connection, term, tally, {
      ...ends,
      again: args.again,
    });
    const seconds = (performance.now() - started) / 1000;
    const { client } = connection;
    const path = await writtenResults(client, ended, args);
    const judgement = await judge(client, ended, args.gates, baseline);
    if (args.junit !== null) {
      const { metric } = args.gates;
      await writeJunit(args.junit, ended, client.results(ended.id), { ...judgement, metric });
    }
    term.print(resultsText([{ run: ended, tally }], term));
    if (path !== null) term.print(`Results: ${path}`);
    printJudgement(judgement, baseline, term);
    if (args.json) printJson(evalSummary(ended, seconds, path, judgement));
    return exitOf(ended, args, judgement);
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

/** The baseline is looked for before anything is spent. */
async function begun(
  args: EvalArguments,
  connection: Connection,
  term: Terminal,
  signal: AbortSignal,
): Promise<{ run: RunView; baseline: Baseline | null }> {
  const { client } = connection;
  const resuming = { client, say: term.say, signal };
  const resumed = args.resume === null ? null : await resumedRun(args.resume, draftFor(args, connection), resuming);
  const wanted = args.gates.baseline;
  const environment = resumed?.environment.id ?? connection.environment?.name.split("@")[0];
  const baseline =
    wanted === null || environment === undefined
      ? null
      : await findBaseline(client, wanted, { environment, apart: resumed?.id ?? null });
  if (baseline !== null) term.say(`Baseline ${baseline.id}: ${baseline.why}`);
  const run = resumed ?? (await startedRun(args, connection, term, signal));
  return { run, baseline };
}

/** With the environment by the name that the platform knows it by. */
function draftFor({ draft }: EvalArguments, { environment }: Connection): DraftRequest {
  return environment === null ? draft : { ...draft, environment: environment.name };
}

function printJudgement({ gates, comparison }: Judgement, baseline: Baseline | null, { print, room }: Terminal): void {
  if (comparison !== null) print(`\n${comparisonText(comparison, room, baseline?.why)}`);
  if (gates.length > 0) print(`\n${verdictsText(gates)}`);
}

/** A run that broke is worse than a gate that was not met; too few scores are a gate where that was asked for here. */
function exitOf(run: RunView, args: EvalArguments, { gates }: Judgement): ExitCode {
  const tooFew = run.error?.code === "too_few_scored" && args.gates.minScored !== null;
  if (run.status !== "completed" && !tooFew) return EXIT.bad;
  // By the latest attempts: what a retry has mended is no error any more.
  const { n_error, n_unscored } = run.report.reward;
  const bad = n_error + n_unscored;
  if (!tooFew && args.failOnError && bad > 0) return EXIT.bad;
  return exitOfGates(gates) ?? EXIT.good;
}
