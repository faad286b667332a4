/** What `rollcall train` takes: a run of its own kind, and who trains. */
import { command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { PLAY_FLAGS } from "../eval/spec.ts";

/** What says how a policy is trained; `npm start` takes some of it, too. */
export const LEARNING_FLAGS = {
  "max-steps": {
    value: "N",
    says: "optimizer steps; default what the environment is known to need",
  },
  "learning-rate": {
    value: "L",
    says: "of the embedded trainer; 0 = the control: nothing is learnt",
  },
  "eval-examples": { value: "N", says: "held-out tasks of each eval; 0 = none; default 256" },
} as const satisfies Flags;

export const TRAIN = command({
  name: "train",
  takes: "<environment>",
  argument: "environment",
  says: "train a policy on an environment, and evaluate it before and after",
  more: `Rollouts are scored in groups and cut into batches for a trainer, which sends new weights back. With nothing named
it all runs here: the policy beside the platform and a trainer of this package, a process of its own. The tasks of the
evals are never trained on. Interrupted, the training is paused and goes on with --resume.`,
  flags: {
    ...LEARNING_FLAGS,
    "group-size": { value: "G", says: "rollouts of one task" },
    "batch-size": { value: "R", says: "rollouts that one step takes" },
    passes: {
      value: "N",
      says: "how often the embedded trainer trains on each batch; default what the environment is known to need",
    },
    loss: { value: "NAME", says: "of the embedded trainer; docs/training.md lists them" },
    trainer: {
      value: "T",
      says: "embedded, the default; pull: one of yours takes batches; push:URL: they are sent there",
    },
    ...PLAY_FLAGS,
    resume: {
      short: "R",
      value: "RUN",
      says: "go on with a training run; other flags change nothing",
    },
    ...PLATFORM_FLAGS,
    timeout: { value: "S", says: "cancel the run after this many seconds, exit 1" },
  },
});
