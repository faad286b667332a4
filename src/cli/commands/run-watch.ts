/** `rollcall run watch`: follows runs to their end. They go on whether anybody watches or not. */
import { readCommandLine } from "../command-line.ts";
import { RUN_WATCH } from "../commands.ts";
import { evalSummary } from "../eval/summary.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { followRun } from "../follow.ts";
import { onPlatform, type Session } from "../on-platform.ts";
import { Display } from "../terminal/display.ts";

import { RewardTally, resultsText } from "../terminal/results.ts";

export function runWatchCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_WATCH, argv);
  const ids = [...new Set(line.positionals)];
  if (ids.length === 0) throw usageError("name one run or more");
  const goOn = `; the runs go on; follow them with: rollcall run watch ${ids.join(" ")}`;
  const watch = async ({ client, signal, term, answer }: Session) => {
    const display = new Display(term, () => performance.now());
    // An id that is wrong is said before anything is drawn.
    for (const run of await Promise.all(ids.map((id) => client.getRun(id, { signal })))) {
      display.show(run);
    }
    const follow = async (id: string) => {
      const tally = new RewardTally();
      const run = await followRun(client, id, {
        signal,
        onProgress: (it) => display.show(it),
        onFinished: ({ reward }) => tally.add(reward),
      });
      return { run, tally };
    };
    const ended = await Promise.all(ids.map(follow));
    const data = ended.map(({ run }) => {
      return evalSummary(run, (run.finished_at ?? run.created_at) - run.created_at, null);
    });
    answer({ object: "list", data }, () => resultsText(ended, term));
    return ended.every(({ run }) => run.status === "completed") ? EXIT.good : EXIT.bad;
  };
  return onPlatform(line, watch, goOn);
}
