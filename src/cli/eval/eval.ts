/** `rollcall eval` and `rescore`: makes a run (or resumes one), follows it to its end, and reports the result. */

import type { RunView } from "../../contract/run.ts";
import type { RescoreRequestInput } from "../../contract/run-control.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { checkFolderOf, defined, environmentArgs, judgeTargets } from "../argument-values.ts";
import type { CommandLine } from "../command-line.ts";
import type { Connection } from "../connect.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { firstOf } from "../interrupt.ts";
import { platformAsked, withConnection } from "../on-platform.ts";
import type { EVAL_FLAGS, RESCORE_FLAGS } from "../run-flags.ts";
import { resultsText } from "../terminal/results.ts";
import { printJson, type Terminal, terminal } from "../terminal/terminal.ts";
import { tracked, trackerOf } from "../tracker.ts";
import { playedByProgram } from "./agent.ts";
import { type EvalArguments, evalArguments } from "./arguments.ts";
import { type Baseline, exitOfGates, findBaseline, type Judgement, judge } from "./gates.ts";
import { writeJunit } from "./junit.ts";
import { keepVerdict } from "./keep-verdict.ts";
import { writeMarkdown } from "./markdown.ts";
import { followToEnd, startRun } from "./play.ts";
import { prepareFolder, writeResults } from "./results-folder.ts";
import { resumeRun } from "./resume.ts";
import { comparisonText, evalSummary, judgementsText } from "./summary.ts";
import { taskCases } from "./task-cases.ts";

export async function evalCommand(line: CommandLine<keyof typeof EVAL_FLAGS>): Promise<ExitCode> {
  const args = evalArguments(line);
  const { json, junit, markdown, outputDir, gates } = args;
  const term = terminal(json);
  const tracker = await trackerOf(line);
  if (outputDir !== null) prepareFolder(outputDir);
  if (junit !== null) checkFolderOf(junit, "junit");
  if (markdown !== null) checkFolderOf(markdown, "markdown");
  return await withConnection(args.connect, term.log, async (connection, ends) => {
    const started = performance.now();
    const { client } = connection;
    const { begun, baseline } = await beginRun(args, connection, term, ends.interrupt);
    const { again, program } = args;
    const follow = () => followToEnd(begun, connection, term, ends, again, program?.again);
    const play = () => (program === null ? follow() : playedByProgram(program, begun, connection, term, follow));
    const following = { log: term.log, signal: firstOf(ends), command: again, program: program?.again };
    const ended = await tracked(tracker, begun.id, connection, following, play);
    const seconds = (performance.now() - started) / 1000;
    const { run } = ended;
    const path = outputDir === null ? null : await writeResults(client, run, outputDir, args.stateColumns);
    const judgement = await judge(client, run, gates, baseline);
    const exit = exitOf(run, args, judgement);
    await keepVerdict(client, run, judgement.gates, term.log);
    await writeReports(args, client, { run, judgement, exit });
    term.print(resultsText([ended], term));
    if (path !== null) term.print(`Results: ${path}`);
    printJudgement(judgement, baseline, term);
    if (json) printJson(evalSummary(ended, seconds, path, judgement));
    return exit;
  });
}

/** For builds: what --junit and --markdown name. */
async function writeReports(
  { junit, markdown, gates }: EvalArguments,
  client: RollcallClient,
  ended: { readonly run: RunView; readonly judgement: Judgement; readonly exit: ExitCode },
): Promise<void> {
  if (junit === null && markdown === null) return;
  const { run, judgement } = ended;
  const cases = await taskCases(run, client.runs.results(run.id), gates.metric);
  if (junit !== null) await writeJunit(junit, run, cases, judgement.gates);
  if (markdown !== null) writeMarkdown(markdown, { ...ended, cases });
}

/** The baseline is looked up before anything is spent. */
async function beginRun(
  args: EvalArguments,
  connection: Connection,
  term: Terminal,
  signal: AbortSignal,
): Promise<{ begun: RunView; baseline: Baseline | null }> {
  const { client } = connection;
  // The platform may have the environment under another name than the user gave.
  const draft = { ...args.draft, ...defined({ environment: connection.environment?.name }) };
  const resumed = args.resume === null ? null : await resumeRun(args.resume, draft, { client, log: term.log, signal });
  const wanted = args.gates.baseline;
  const environment = resumed?.environment.id ?? connection.environment?.name.split("@")[0];
  const baseline =
    wanted === null || environment === undefined
      ? null
      : await findBaseline(client, wanted, { environment, apart: resumed?.id ?? null });
  if (baseline !== null) term.log(`Baseline ${baseline.id}: ${baseline.why}`);
  return { begun: resumed ?? (await startRun(args, connection, term, signal)), baseline };
}

function printJudgement({ gates, comparison }: Judgement, baseline: Baseline | null, { print, room }: Terminal): void {
  if (comparison !== null) print(`\n${comparisonText(comparison, room, baseline?.why)}`);
  if (gates.length > 0) print(`\n${judgementsText(gates)}`);
}

/**
 * A broken run takes precedence over a failed gate. Too few scores count as a failed gate if --min-scored was given
 * here.
 */
function exitOf(run: RunView, args: EvalArguments, { gates }: Judgement): ExitCode {
  const tooFew = run.error?.code === "too_few_scored" && args.gates.minScored !== null;
  if (run.status !== "completed" && !tooFew) return EXIT.bad;
  // Counts the latest attempts: an error that a retry fixed does not count.
  const { n_error, n_unscored } = run.report.reward;
  const bad = n_error + n_unscored;
  if (!tooFew && args.failOnError && bad > 0) return EXIT.bad;
  return exitOfGates(gates) ?? EXIT.good;
}

/** Scores the rollouts of an ended run again, in a new run. */
export async function rescoreCommand(line: CommandLine<keyof typeof RESCORE_FLAGS>): Promise<ExitCode> {
  const source = line.one("a run");
  const term = terminal(line.on("json"));
  const asked = {
    ...platformAsked(line),
    ephemeral: false,
    environment: line.text("environment"),
  };
  const request = rescoreRequest(line);
  return await withConnection(asked, term.log, async (connection, ends) => {
    const started = performance.now();
    const { client, environment, url } = connection;
    const named = defined({ environment: environment?.name });
    const begun = await client.runs.rescore(source, { ...request, ...named }, { signal: ends.interrupt });
    term.log(`Run ${begun.id} rescores ${source} on ${url}`);
    const ended = await followToEnd(begun, connection, term, ends, `${COMMAND} eval`);
    term.print(resultsText([ended], term));
    const { run } = ended;
    const seconds = (performance.now() - started) / 1000;
    if (line.on("json")) printJson({ ...evalSummary(ended, seconds, null), rescored_from: run.rescored_from });
    return run.status === "completed" ? EXIT.good : EXIT.bad;
  });
}

function rescoreRequest(line: CommandLine<keyof typeof RESCORE_FLAGS>): RescoreRequestInput {
  const args = environmentArgs(line.all("env-args"));
  const judges = judgeTargets(line.all("judge"));
  const metadata = line.pairs("metadata");
  return {
    ...(Object.keys(args).length > 0 && { environment_args: args }),
    ...(Object.keys(judges).length > 0 && { judges }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...defined({ name: line.text("name"), min_scored: line.number("min-scored") }),
  };
}
