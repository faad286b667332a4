/**
 * `rollcall eval | train | compare | rescore | generate | start`: the commands that make a run, and the one that
 * compares some. The code behind them is loaded when one of them is called.
 */
import { COMPARED_TASKS } from "../../contract/comparison.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { EVAL_FLAGS, GENERATE_FLAGS, RESCORE_FLAGS, START_FLAGS, TRAIN_FLAGS } from "../run-flags.ts";

const EVAL = command({
  name: "eval",
  takes: "<environment>",
  program: "[-- COMMAND [ARG…]]",
  argument: "environment",
  help: "evaluate a model on an environment",
  more: `<environment> is an id or id@version, or, for your own environment, ./folder or the name of an installed package.
The command starts a run, waits for its end and prints a table. If interrupted, continue it with --resume.
With COMMAND, this program plays the rollouts, as with agent run.`,
  flags: EVAL_FLAGS,
  run: async (line) => (await import("../eval/eval.ts")).evalCommand(line),
});

const TRAIN = command({
  name: "train",
  takes: "<environment>",
  argument: "environment",
  help: "train a policy on an environment, and evaluate it before and after",
  more: `Rollouts are scored in groups and sent in batches to a trainer, which returns new weights. By default everything runs
here: the policy next to the platform, and the trainer of this package in its own process. The tasks of the evals are
never trained on. If interrupted, the training is paused; continue it with --resume.`,
  flags: TRAIN_FLAGS,
  run: async (line) => (await import("../train/train.ts")).trainCommand(line),
});

const COMPARE = command({
  name: "compare",
  takes: "<run> <baseline>…",
  reads: true,
  help: "compare a run with baselines: the paired differences, and the tasks that flipped",
  more: `With several baselines there is a row for each, with its p value and the same corrected for their number by Holm's
method, and tasks are listed that differ from at least one. --fail-if-worse and --max-drop must hold against each
baseline; the exit code is 3 if one fails, else 5 if one is inconclusive.`,
  flags: {
    metric: { value: "NAME", help: "a score of all runs; default the reward" },
    limit: { value: "N", help: "tasks to show; default 20" },
    tasks: { value: "WHICH", choices: COMPARED_TASKS, help: "which tasks to list; default flipped" },
    after: { value: "KEY", help: "tasks after this task_key: `next`, or `last_id`, of the previous page" },
    "fail-if-worse": { help: "exit 3 if the run is significantly worse than a baseline" },
    "max-drop": {
      value: "D",
      help: "exit 3 if the mean dropped by more than this from a baseline, 5 if that is unclear",
    },
    ...PLATFORM_FLAGS,
  },
  run: async (line) => (await import("../eval/compare.ts")).compareCommand(line),
});

const RESCORE = command({
  name: "rescore",
  takes: "<run>",
  help: "score an ended run again, with another rubric",
  more: `The command starts a new run, waits for its end and prints a table. The policy is not called; judges are.
If interrupted, continue it with eval --resume.`,
  flags: RESCORE_FLAGS,
  run: async (line) => (await import("../eval/eval.ts")).rescoreCommand(line),
});

const GENERATE = command({
  name: "generate",
  takes: "<environment>",
  argument: "environment",
  help: "create training data: play an environment and export the rollouts",
  more: `Like eval, but writes training rows to --out when the run has ended. If interrupted, continue it with --resume.
Failed rollouts do not prevent the export; a run that does not complete exits 1.`,
  flags: GENERATE_FLAGS,
  run: async (line) => (await import("../eval/generate.ts")).generateCommand(line),
});

export const START = command({
  name: "start",
  help: "the same as serve, with a demo: what npm start runs",
  more: `The demo trains the policy next to the platform and shows its rising reward. The policy is weak on purpose:
format and habits, not skill. All data is in memory if there is enough, and lost when the machine restarts;
with --keep, or if .rollcall already exists, it is on disk. A later start serves the weights that the demo
trained, and stays up; --again trains anew.`,
  flags: START_FLAGS,
  run: async (line) => (await import("../train/demo.ts")).startCommand(line),
});

export const EVAL_COMMANDS = [EVAL, TRAIN, COMPARE, RESCORE, GENERATE] as const;
