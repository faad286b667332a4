/** `rollcall run results`: finished rollouts, or those in flight, as JSON lines, as they come, to stdout or a file. */
import { LIMITS } from "../../contract/limits.ts";
import { OUTCOMES } from "../../contract/run.ts";
import { readCommandLine } from "../command-line.ts";
import { RUN_RESULTS } from "../commands.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { printLines, writeLines } from "../json-lines.ts";
import { onPlatform } from "../on-platform.ts";
import { countText } from "../terminal/format.ts";

export function runResultsCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_RESULTS, argv);
  const id = line.one("a run");
  const outcome = OUTCOMES.find((name) => name === line.text("outcome"));
  const file = line.text("output");
  if (outcome !== undefined && line.on("running")) {
    throw usageError("--running: what is in flight has no outcome yet", "running");
  }
  return onPlatform(line, async ({ client, signal, answer }) => {
    // Read first: a run nobody knows leaves no empty file behind.
    const run = await client.getRun(id, { signal });
    const rows = line.on("running")
      ? client.inFlight(run.id, { limit: LIMITS.resultsPerPage }, { signal })
      : client.results(run.id, { outcome }, { signal });
    if (file === undefined) {
      await printLines(rows, line.on("json"));
      return EXIT.good;
    }
    const written = await writeLines(rows, file, "output");
    const text = `${countText(written)} rollouts in ${file}`;
    answer({ object: "results", run_id: run.id, rows: written, file }, () => text);
    return EXIT.good;
  });
}
