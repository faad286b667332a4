/** `rollcall compare`: two runs, task by task. */
import { readCommandLine } from "../command-line.ts";
import { COMPARE } from "../eval/spec.ts";
import { comparisonText } from "../eval/summary.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";

export function compareCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(COMPARE, argv);
  const [run, baseline, ...more] = line.positionals;
  if (run === undefined || baseline === undefined || more.length > 0) {
    throw usageError("name two runs: the one to judge, then its baseline");
  }
  const query = {
    baseline,
    metric: line.text("metric"),
    limit: line.count("limit", 1),
    after: line.text("after"),
  };
  return onPlatform(line, async ({ client, signal, term, answer }) => {
    const comparison = await client.compareRuns(run, query, { signal });
    answer(comparison, () => comparisonText(comparison, term.room));
    return EXIT.good;
  });
}
