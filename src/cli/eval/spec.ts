/** What `rollcall eval` takes, after `vf-eval`'s flags where both have one, and what compares its runs. */
import { command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";

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
  "env-args": {
    short: "a",
    value: "ARGS",
    repeatable: true,
    says: "arguments of the environment: JSON, a JSON file, or k=v",
  },
  dataset: {
    value: "FILE|ID",
    says: "task rows: a JSONL file, or id or name of an uploaded dataset",
  },
  "max-concurrent": { short: "c", value: "N", says: "rollouts running at once; default 32" },
  "max-tokens": { short: "t", value: "N", says: "of one reply" },
  temperature: { short: "T", value: "X", says: "of sampling" },
  "sampling-args": {
    short: "S",
    value: "JSON",
    says: "more sampling arguments; they win over -t and -T",
  },
  "max-retries": { value: "N", says: "of one model call; default 2" },
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
  port: {
    value: "P",
    says: "of a platform of its own; default 8787, a busy one moves to the next free",
  },
} as const satisfies Flags;

/** What says which run to make. */
export const RUN_FLAGS = {
  "num-examples": { short: "n", value: "N", says: "tasks; -1 = all, the default if they end" },
  "rollouts-per-example": { short: "r", value: "N", says: "default 1" },
  ...PLAY_FLAGS,
} as const satisfies Flags;

export const EVAL = command({
  name: "eval",
  takes: "<environment>",
  argument: "environment",
  says: "evaluate a model on an environment",
  more: `<environment> is an id or id@version; ./folder or the name of an installed package where the environment is
your own. A run is made, followed to its end, and a table printed. Interrupted, it goes on with --resume.`,
  flags: {
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
    junit: { value: "FILE", says: "write a JUnit report: a test case for each task" },
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
      says: "go on with a run: follow it, and try again what has no score; other flags change nothing",
    },
    ...PLATFORM_FLAGS,
    timeout: { value: "S", says: "cancel the run after this many seconds, exit 1" },
  },
});

export const COMPARE = command({
  name: "compare",
  takes: "<run> <baseline>",
  argument: "other",
  reads: true,
  says: "the paired difference of two runs, and the tasks that flipped",
  flags: {
    metric: { value: "NAME", says: "a score of both; default the reward" },
    limit: { value: "N", says: "flipped tasks to show; default 20" },
    after: { value: "KEY", says: "those behind this task_key: `next` of the page before" },
    ...PLATFORM_FLAGS,
  },
});
