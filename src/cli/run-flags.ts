/**
 * The flags of the commands that make a run, after `vf-eval`'s where both have one. Apart from what the commands do:
 * a command's help is made from them, and what reads them is loaded only when the command is called.
 */
import { EXPORT_FORMATS } from "../contract/export.ts";
import { ARGS_FLAG, type Flags, PLATFORM_FLAGS } from "./command-line.ts";

/** What says who plays what, and where, in a run of any kind. */
export const PLAY_FLAGS = {
  model: { short: "m", value: "NAME", says: "the model, as its endpoint calls it" },
  "base-url": {
    short: "b",
    value: "URL",
    says: "OpenAI-compatible endpoint, up to and including /v1; default OPENAI_BASE_URL",
  },
  "api-key-var": {
    short: "k",
    value: "VAR",
    says: "environment variable that holds its key; default OPENAI_API_KEY",
  },
  endpoint: { short: "e", value: "NAME", says: "an endpoint the platform knows, instead of -b" },
  fleet: { value: "NAME", says: "a fleet the platform knows, instead of -b" },
  "env-args": ARGS_FLAG,
  dataset: { value: "FILE|ID", says: "task rows: a JSONL file, or id or name of an uploaded dataset" },
  "max-concurrent": { short: "c", value: "N", says: "rollouts running at once; default 32" },
  "max-tokens": { short: "t", value: "N", says: "of one reply" },
  temperature: { short: "T", value: "X", says: "of sampling" },
  "sampling-args": { short: "S", value: "JSON", says: "more sampling arguments; they win over -t and -T" },
  "max-retries": { value: "N", says: "of one model call; default 2" },
  "max-cost": { value: "DOLLARS", says: "what the run may cost in all; needs -t, and prices of its endpoints" },
  shuffle: { says: "the tasks in an order the seed decides" },
  seed: { value: "N", says: "of that order, and of what the bundled policy draws; default 0" },
  judge: {
    value: "NAME=MODEL@ENDPOINT",
    repeatable: true,
    says: "who answers for a judge of the rubric; ENDPOINT is a name, or a URL up to and including /v1",
  },
  "judge-key-var": {
    value: "VAR",
    says: "environment variable that holds the key of judges given by URL; default OPENAI_API_KEY",
  },
  file: { short: "f", value: "RUN.json", says: "a run request to start from; flags win over it" },
  name: { value: "TEXT", says: "a name of the run" },
  metadata: { value: "k=v", repeatable: true, says: "to find the run again" },
  force: { says: "let the built-in policy play what it has never seen" },
  ephemeral: { says: "a platform of its own that keeps nothing" },
  port: { value: "P", says: "of a platform of its own; default 8787, a busy one moves to the next free" },
} as const satisfies Flags;

/** What says which run to make. */
export const RUN_FLAGS = {
  "num-examples": { short: "n", value: "N", says: "tasks; -1 = all; default all, or 5 where they never end" },
  "rollouts-per-example": { short: "r", value: "N", says: "default 1" },
  ...PLAY_FLAGS,
} as const satisfies Flags;

/** What says which rows for training are made of a run. */
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

/** What says how a policy is trained; `npm start` takes some of it, too. */
export const LEARNING_FLAGS = {
  "max-steps": { value: "N", says: "optimizer steps; default what the environment is known to need" },
  "learning-rate": { value: "L", says: "of the embedded trainer; 0 = the control: nothing is learnt" },
  "eval-examples": { value: "N", says: "held-out tasks of each eval; 0 = none; default 256" },
} as const satisfies Flags;

export const EVAL_FLAGS = {
  ...RUN_FLAGS,
  "min-scored": { value: "SHARE", says: "exit 3 unless this share of the rollouts got a score" },
  "fail-under": { value: "X", says: "exit 3 if the mean reward is less than this" },
  baseline: {
    value: "RUN|k=v",
    repeatable: true,
    says: "compare with this run, or the newest that carries this; exit 3 if worse beyond chance",
  },
  "max-drop": {
    value: "D",
    says: "exit 3 if the mean fell by more than this against --baseline, 5 if that is not clear",
  },
  metric: { value: "NAME", says: "the score the gates look at; default the reward" },
  junit: { value: "FILE", says: "write a JUnit report: a test case for each task and each gate" },
  "fail-on-error": { says: "exit 1 if any rollout failed or has no score" },
  "save-results": { short: "s", says: "write results.jsonl and metadata.json under outputs" },
  "output-dir": { short: "o", value: "DIR", says: "the same, under DIR" },
  "state-columns": {
    short: "C",
    value: "A,B",
    says: "fields of the environment's state to save with each row; needs -s or -o",
  },
  resume: {
    short: "R",
    value: "RUN|last",
    says: "go on with a run: follow it, and try again what has no score; a flag that says otherwise is refused",
  },
  ...PLATFORM_FLAGS,
  timeout: { value: "S", says: "cancel the run after this many seconds, exit 1" },
} as const satisfies Flags;

export const TRAIN_FLAGS = {
  ...LEARNING_FLAGS,
  "group-size": { value: "G", says: "rollouts of one task; default 8" },
  "batch-size": { value: "R", says: "rollouts that one step takes; default 64, for a trainer of yours the API's" },
  passes: {
    value: "N",
    says: "how often the embedded trainer trains on each batch, 1 to 16; default what the environment is known to need",
  },
  "initial-weights": {
    value: "LOCATION",
    says: "with --fleet: where version 0 is, as its engines read it; each replica loads it first",
  },
  loss: { value: "NAME", says: "of the embedded trainer: dppo, ppo_clip, cispo or importance_sampling" },
  trainer: {
    value: "T",
    says: "embedded, the default; pull: one of yours takes batches; push:URL: they are sent there",
  },
  ...PLAY_FLAGS,
  resume: { short: "R", value: "RUN", says: "go on with a training run; other flags change nothing" },
  ...PLATFORM_FLAGS,
  timeout: { value: "S", says: "cancel the run after this many seconds, exit 1" },
} as const satisfies Flags;

export const RESCORE_FLAGS = {
  environment: { value: "E", says: "whose rubric: id, id@version, or a folder; default that of the run" },
  "env-args": {
    short: "a",
    value: "ARGS",
    repeatable: true,
    says: "its arguments: JSON, a JSON file, or k=v; default those of the run",
  },
  judge: { value: "NAME=MODEL@ENDPOINT", repeatable: true, says: "in place of the run's judge of this name" },
  "min-scored": { value: "SHARE", says: "share of the rollouts that must get a score" },
  name: { value: "TEXT", says: "a name of the new run" },
  metadata: { value: "k=v", repeatable: true, says: "in place of what the run carries" },
  ...PLATFORM_FLAGS,
  timeout: { value: "S", says: "cancel the new run after this many seconds, exit 1" },
} as const satisfies Flags;

export const GENERATE_FLAGS = {
  out: { short: "o", value: "FILE", says: "where the rows go, one JSON object a line" },
  ...EXPORT_FLAGS,
  ...RUN_FLAGS,
  resume: { short: "R", value: "RUN_ID", says: "the rows of a run that was started earlier" },
  ...PLATFORM_FLAGS,
  timeout: { value: "S", says: "cancel the run after this many seconds, exit 1" },
} as const satisfies Flags;

export const START_FLAGS = {
  once: { says: "stop after the demo" },
  environment: { value: "E", says: "the demo on this environment; default calculator" },
  ...LEARNING_FLAGS,
  seed: { value: "N", says: "of the demo: its tasks, its draws, its trainer" },
  keep: { says: "keep everything on disk; what is in memory moves there" },
  "no-demo": { says: "no demo" },
  port: { value: "P", says: "default 8787; a busy port moves to the next free one" },
  timeout: { value: "S", says: "stop after this many seconds" },
} as const satisfies Flags;
