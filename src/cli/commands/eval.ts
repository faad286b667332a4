/**
 * `rollcall eval | train | compare | rescore | generate | start`: the commands that make a run, and the one that compares
 * two. What they do is loaded when one of them is called.
 */
import { COMPARED_TASKS } from "../../contract/comparison.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { EVAL_FLAGS, GENERATE_FLAGS, RESCORE_FLAGS, START_FLAGS, TRAIN_FLAGS } from "../run-flags.ts";

const EVAL = command({
  name: "eval",
  takes: "<environment>",
  argument: "environment",
  says: "evaluate a model on an environment",
  more: `<environment> is an id or id@version; ./folder or the name of an installed package where the environment is
your own. A run is made, followed to its end, and a table printed. Interrupted, it goes on with --resume.`,
  flags: EVAL_FLAGS,
  run: async (line) => (await import("../eval/eval.ts")).evalCommand(line),
});

const TRAIN = command({
  name: "train",
  takes: "<environment>",
  argument: "environment",
  says: "train a policy on an environment, and evaluate it before and after",
  more: `Rollouts are scored in groups and cut into batches for a trainer, which sends new weights back. With nothing named
it all runs here: the policy beside the platform and a trainer of this package, a process of its own. The tasks of the
evals are never trained on. Interrupted, the training is paused and goes on with --resume.`,
  flags: TRAIN_FLAGS,
  run: async (line) => (await import("../train/train.ts")).trainCommand(line),
});

const COMPARE = command({
  name: "compare",
  takes: "<run> <baseline>",
  reads: true,
  says: "the paired difference of two runs, and the tasks that flipped",
  flags: {
    metric: { value: "NAME", says: "a score of both; default the reward" },
    limit: { value: "N", says: "tasks to show; default 20" },
    tasks: { value: "WHICH", choices: COMPARED_TASKS, says: "which tasks are listed; default flipped" },
    after: { value: "KEY", says: "those behind this task_key: `next` of the page before" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const [run, baseline, ...more] = line.positionals;
    if (run === undefined || baseline === undefined || more.length > 0) {
      throw usageError("name two runs: the one to judge, then its baseline");
    }
    const query = {
      ...{ baseline, metric: line.text("metric"), limit: line.count("limit", 1), after: line.text("after") },
      tasks: COMPARED_TASKS.find((one) => one === line.text("tasks")),
    };
    return onPlatform(line, async ({ client, signal, term }) => {
      const { comparisonText } = await import("../eval/summary.ts");
      const comparison = await client.runs.compare(run, query, { signal });
      return { json: comparison, text: () => comparisonText(comparison, term.room) };
    });
  },
});

const RESCORE = command({
  name: "rescore",
  takes: "<run>",
  says: "score what an ended run left behind, with another rubric",
  more: `A run of its own is made, followed to its end, and a table printed. The policy is not called; judges are.
Interrupted, it goes on with eval --resume.`,
  flags: RESCORE_FLAGS,
  run: async (line) => (await import("../eval/eval.ts")).rescoreCommand(line),
});

const GENERATE = command({
  name: "generate",
  takes: "<environment>",
  argument: "environment",
  says: "make training data: play an environment and export the rollouts",
  more: `As eval, with rows for training in the file of --out when the run has ended. Interrupted, it goes on with --resume.
A run in which rollouts fail has its rows all the same; one that does not complete exits 1.`,
  flags: GENERATE_FLAGS,
  run: async (line) => (await import("../eval/generate.ts")).generateCommand(line),
});

export const START = command({
  name: "start",
  says: "the same, with a demo: what npm start runs",
  more: `The demo trains the policy beside the platform, and shows its reward as it rises. The policy is weak on purpose:
format and habits, not skill. Everything the platform keeps is in memory where there is room, until the machine
restarts, and it says so; with --keep, and where there is a .rollcall already, it is on disk.`,
  flags: START_FLAGS,
  run: async (line) => (await import("../train/demo.ts")).startCommand(line),
});

export const EVAL_COMMANDS = [EVAL, TRAIN, COMPARE, RESCORE, GENERATE] as const;
