/** `rollcall generate`: plays an environment and writes rows for training from its rollouts. */

import type { RunView } from "../../contract/run.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { LeftOutNote } from "../../sdk/client.ts";
import { checkFolderOf } from "../argument-values.ts";
import type { CommandLine } from "../command-line.ts";
import { exportQuery, LeftOutTally } from "../commands/run-rows.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { writeLines } from "../json-lines.ts";
import { withConnection } from "../on-platform.ts";
import type { GENERATE_FLAGS } from "../run-flags.ts";
import { countText, endedCounts } from "../terminal/format.ts";
import { resultsText } from "../terminal/results.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { runArguments } from "./arguments.ts";
import { followToEnd, startRun } from "./play.ts";

/** The flags for which rows are written, and where. */
const CHOSEN = ["out", "format", "min-reward", "best-of-group", "dedupe"] as const;

export async function generateCommand(line: CommandLine<keyof typeof GENERATE_FLAGS>): Promise<ExitCode> {
  const out = outFile(line.text("out"));
  const term = terminal(line.on("json"));
  const asked = runArguments(line);
  // Rollouts without a score are left out of the rows; the run does not fail because of them.
  const args = { ...asked, draft: { min_scored: 0, ...asked.draft } };
  const query = exportQuery(line);
  return await withConnection(args.connect, term.log, async (connection, ends) => {
    const { client } = connection;
    const begun =
      args.resume === null
        ? await startRun(args, connection, term, ends.interrupt)
        : await client.runs.get(args.resume);
    const again = `${COMMAND} generate${line.asGiven(CHOSEN)}`;
    const ended = await followToEnd(begun, connection, term, ends, again);
    const { run } = ended;
    const left = new LeftOutTally();
    const onLeftOut = (note: LeftOutNote) => left.add(note);
    const rows = client.runs.export(run.id, query, { signal: ends.interrupt, onLeftOut });
    const written = await writeLines(rows, out, "out");
    term.print(resultsText([ended], term));
    term.print([`${countText(written)} rows in ${out}`, ...left.lines()].join("\n"));
    if (args.json) {
      const file = { format: query.format, rows: written, left_out: left.asJson(), file: out };
      printJson({ ...summaryOf(run), ...file });
    }
    return run.status === "completed" ? EXIT.good : EXIT.bad;
  });
}

/** Checked before anything is spent. */
function outFile(file: string | undefined): string {
  if (file === undefined) throw usageError("--out: is required: the file for the rows", "out");
  checkFolderOf(file, "out");
  return file;
}

function summaryOf(run: RunView) {
  const { counts } = run;
  return {
    run_id: run.id,
    status: run.status,
    error: run.error,
    environment: `${run.environment.id}@${run.environment.version}`,
    model: run.model,
    counts: { planned: counts.planned, ...endedCounts(counts) },
    reward: run.report.reward,
  };
}
