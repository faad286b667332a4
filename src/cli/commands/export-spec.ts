/** What the commands take that write rows for training. */
import { EXPORT_FORMATS } from "../../contract/export.ts";
import { command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { RUN_FLAGS } from "../eval/spec.ts";

export const EXPORT_FLAGS = {
  format: {
    value: "FORMAT",
    choices: EXPORT_FORMATS,
    says: "sft: conversations, the default; dpo: pairs; verifiers: rows of results",
  },
  "min-reward": { value: "X", says: "only rollouts worth this; of a pair, the chosen one" },
  "best-of-group": { says: "of each task only its best rollout, or its best and its worst" },
  dedupe: { says: "of rollouts that say the same only the first" },
} as const satisfies Flags;

export const GENERATE = command({
  name: "generate",
  takes: "<environment>",
  argument: "environment",
  says: "make training data: play an environment and export the rollouts",
  more: `As eval, with rows for training in the file of --out when the run has ended. Interrupted, it goes on with --resume.
A run in which rollouts fail has its rows all the same; one that does not complete exits 1.`,
  flags: {
    out: { short: "o", value: "FILE", says: "where the rows go, one JSON object a line" },
    ...EXPORT_FLAGS,
    ...RUN_FLAGS,
    resume: { short: "R", value: "RUN_ID", says: "the rows of a run that was started earlier" },
    ...PLATFORM_FLAGS,
    timeout: { value: "S", says: "cancel the run after this many seconds, exit 1" },
  },
});

export const RUN_EXPORT = command({
  name: "run export",
  takes: "<run>",
  argument: "other",
  reads: true,
  says: "rows for training, made of a run's rollouts, one JSON object a line",
  flags: {
    ...EXPORT_FLAGS,
    output: { short: "o", value: "FILE", says: "write there instead of to stdout" },
    ...PLATFORM_FLAGS,
  },
});
