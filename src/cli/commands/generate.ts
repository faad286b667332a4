/** `rollcall generate`: plays an environment and writes rows for training, made of the rollouts. */
import type { RunView } from "../../contract/run.ts";
import type { LeftOutNote } from "../../sdk/client.ts";
import { checkFolderOf, portOf } from "../argument-values.ts";
import { type CommandLine, readCommandLine } from "../command-line.ts";
import { type Connection, connect } from "../connect.ts";
import { datasetArgument } from "../dataset-argument.ts";
import { draftRequest } from "../eval/arguments.ts";
import { LeftOutTally } from "../eval/left-out.ts";
import { playedRun, startedRun } from "../eval/played-run.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { catchInterrupts, firstOf } from "../interrupt.ts";
import { writeLines } from "../json-lines.ts";
import { countText, sum } from "../terminal/format.ts";
import { RewardTally, resultsText } from "../terminal/results.ts";
import { printJson, type Terminal, terminal } from "../terminal/terminal.ts";
import { GENERATE } from "./export-spec.ts";
import { exportQuery } from "./run-export.ts";

type Line = CommandLine<keyof typeof GENERATE.flags>;

/** What says which rows go where. */
const CHOSEN = ["out", "format", "min-reward", "best-of-group", "dedupe"] as const;

export async function generateCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(GENERATE, argv);
  const out = outFile(line.text("out"));
  const json = line.on("json");
  const term = terminal(json);
  const timeoutMs = line.timeoutMs("timeout");
  const draft = draftOf(line);
  const query = exportQuery(line);
  using interrupt = catchInterrupts();
  const timeout = timeoutMs === null ? null : AbortSignal.timeout(timeoutMs);
  const connection = await connect({
    platform: line.text("platform"),
    ephemeral: line.on("ephemeral"),
    port: portOf(line.text("port")),
    environment: draft.environment,
    signal: firstOf(interrupt.signal, timeout),
    say: term.say,
  });
  try {
    const run = await begun(line, draft, connection, term, interrupt.signal);
    const tally = new RewardTally();
    const again = `rollcall generate${line.asGiven(CHOSEN)}`;
    const ends = { interrupt: interrupt.signal, timeout, again };
    const ended = await playedRun(run, connection, term, tally, ends);
    const left = new LeftOutTally();
    const onLeftOut = (note: LeftOutNote) => left.add(note);
    const options = { signal: interrupt.signal, onLeftOut };
    const rows = connection.client.exportRun(ended.id, query, options);
    const written = await writeLines(rows, out, "out");
    term.print(resultsText([{ run: ended, tally }], term));
    term.print([`${countText(written)} rows in ${out}`, ...left.lines()].join("\n"));
    if (json) {
      const { format } = query;
      const file = { format, rows: written, left_out: left.asJson(), file: out };
      printJson({ ...summaryOf(ended), ...file });
    }
    return ended.status === "completed" ? EXIT.good : EXIT.bad;
  } finally {
    await connection.close();
  }
}

/** Asked for before anything is spent. */
function outFile(file: string | undefined): string {
  if (file === undefined) throw usageError("--out: name the file the rows go into", "out");
  checkFolderOf(file, "out");
  return file;
}

/** Rollouts without a score are left out of the rows; they are no reason to call the run failed. */
function draftOf(line: Line) {
  const [environment, ...more] = line.positionals;
  if (more.length > 0) throw usageError(`one environment, not ${line.positionals.join(", ")}`);
  return { min_scored: 0, ...draftRequest(line, environment) };
}

async function begun(
  line: Line,
  draft: ReturnType<typeof draftOf>,
  connection: Connection,
  term: Terminal,
  signal: AbortSignal,
): Promise<RunView> {
  const resume = line.text("resume");
  if (resume !== undefined) return await connection.client.getRun(resume);
  const given = line.text("dataset");
  const dataset = given === undefined ? null : datasetArgument(given);
  const args = { draft, dataset, force: line.on("force") };
  return await startedRun(args, connection, term, signal);
}

function summaryOf(run: RunView) {
  const { planned, scored, unscored, failed, cancelled } = run.counts;
  return {
    run_id: run.id,
    status: run.status,
    error: run.error,
    environment: `${run.environment.id}@${run.environment.version}`,
    model: run.model,
    counts: {
      planned,
      scored,
      unscored: sum(unscored),
      failed: sum(failed),
      cancelled: sum(cancelled),
    },
    reward: run.report.reward,
  };
}
