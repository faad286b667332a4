/** Every command, in the order the help lists them. What each does stands in a file of its own. */
import { LIMITS } from "../contract/limits.ts";
import { OUTCOMES, RUN_STATUSES } from "../contract/run.ts";
import { type CommandSpec, command, type Flag, PLATFORM_FLAGS } from "./command-line.ts";
import {
  RESCORE,
  ROLLOUT_CANCEL,
  ROLLOUT_FORK,
  RUN_AUDIT,
  RUN_PAUSE,
  RUN_RESUME,
  RUN_RETRY,
  RUN_UPDATE,
} from "./commands/control-specs.ts";
import { GENERATE, RUN_EXPORT } from "./commands/export-spec.ts";
import { COMPARE, EVAL } from "./eval/spec.ts";
import { LEARNING_FLAGS, TRAIN } from "./train/spec.ts";

const JSON_FLAG = { json: PLATFORM_FLAGS.json };

const ARGS_FLAG: Flag = {
  short: "a",
  value: "ARGS",
  repeatable: true,
  says: "arguments of the environment: JSON, a JSON file, or k=v",
};

export const RUN_LIST = command({
  name: "run list",
  takes: "",
  argument: "other",
  reads: true,
  says: "runs, newest first",
  flags: {
    status: { value: "STATUS", choices: RUN_STATUSES, says: "only runs in this state" },
    environment: { value: "E", says: "only runs of this environment: id or id@version" },
    metadata: { value: "k=v", repeatable: true, says: "only runs that carry this" },
    limit: { value: "N", says: "how many; default 20" },
    ...PLATFORM_FLAGS,
  },
});

export const RUN_SHOW = command({
  name: "run show",
  takes: "<run>",
  argument: "other",
  reads: true,
  says: "one run: counts, scores, what went wrong",
  flags: PLATFORM_FLAGS,
});

export const RUN_WATCH = command({
  name: "run watch",
  takes: "<run>…",
  argument: "other",
  says: "follow runs to their end",
  more: "Exits 1 if any of them does not complete. Interrupted, the runs go on.",
  flags: PLATFORM_FLAGS,
});

export const RUN_CANCEL = command({
  name: "run cancel",
  takes: "<run>",
  argument: "other",
  says: "end a run early",
  flags: PLATFORM_FLAGS,
});

export const RUN_RESULTS = command({
  name: "run results",
  takes: "<run>",
  argument: "other",
  reads: true,
  says: "the finished rollouts of a run, one JSON object a line",
  flags: {
    outcome: { value: "OUTCOME", choices: OUTCOMES, says: "only these" },
    running: { says: "those in flight instead: id, place, since when" },
    output: { short: "o", value: "FILE", says: "write there instead of to stdout" },
    ...PLATFORM_FLAGS,
  },
});

export const ROLLOUT_SHOW = command({
  name: "rollout show",
  takes: "<rollout>",
  argument: "other",
  reads: true,
  says: "the transcript of one rollout",
  more: "Long messages are cut on screen; --json has everything.",
  flags: PLATFORM_FLAGS,
});

export const DATASET_PUSH = command({
  name: "dataset push",
  takes: "<file | ->",
  argument: "file",
  says: "upload task rows, one JSON object a line",
  more: `- reads stdin. With --environment every row is checked as a run of it would; the first one that is refused is
named by its line.`,
  flags: {
    name: { value: "NAME", says: "to refer to it by" },
    environment: { value: "E", says: "check the rows against this environment: id or id@version" },
    "env-args": ARGS_FLAG,
    ...PLATFORM_FLAGS,
  },
});

export const DATASET_LIST = command({
  name: "dataset list",
  takes: "",
  argument: "other",
  reads: true,
  says: "uploaded datasets, newest first",
  flags: PLATFORM_FLAGS,
});

export const DATASET_SHOW = command({
  name: "dataset show",
  takes: "<dataset>",
  argument: "other",
  reads: true,
  says: "one dataset and its first rows",
  flags: {
    "num-rows": {
      short: "n",
      value: "N",
      says: `rows to show, ${LIMITS.resultsPerPage} at most; default 3`,
    },
    ...PLATFORM_FLAGS,
  },
});

export const DATASET_DELETE = command({
  name: "dataset delete",
  takes: "<dataset>",
  argument: "other",
  says: "delete a dataset no unfinished run needs",
  flags: PLATFORM_FLAGS,
});

const ENDPOINT_FLAGS = {
  "base-url": { short: "b", value: "URL", says: "up to and including /v1" },
  "api-key-var": {
    short: "k",
    value: "VAR",
    says: "environment variable that holds its key",
  },
  "max-concurrent": { value: "N", says: "no run keeps more rollouts at once on it" },
  rpm: { value: "N", says: "requests a minute it allows" },
  "input-price": { value: "X", says: "dollars for a million prompt tokens" },
  "output-price": { value: "X", says: "dollars for a million completion tokens" },
} as const;

export const ENDPOINT_ADD = command({
  name: "endpoint add",
  takes: "<name>",
  argument: "other",
  says: "name an endpoint, and see what it supports",
  more: "One short call is made to see what it supports; an endpoint that does not answer is added all the same.",
  flags: {
    ...ENDPOINT_FLAGS,
    model: { short: "m", value: "NAME", says: "the model to ask; default the first it lists" },
    "no-probe": { says: "make no call" },
    ...PLATFORM_FLAGS,
  },
});

export const ENDPOINT_LIST = command({
  name: "endpoint list",
  takes: "",
  argument: "other",
  reads: true,
  says: "the endpoints that have a name",
  flags: PLATFORM_FLAGS,
});

export const ENDPOINT_SHOW = command({
  name: "endpoint show",
  takes: "<endpoint>",
  argument: "other",
  reads: true,
  says: "one endpoint and what it supports",
  flags: PLATFORM_FLAGS,
});

export const ENDPOINT_UPDATE = command({
  name: "endpoint update",
  takes: "<endpoint>",
  argument: "other",
  says: "change what is named, and nothing else",
  flags: {
    name: { value: "NAME", says: "a new name" },
    ...ENDPOINT_FLAGS,
    "no-api-key": { says: "forget its key" },
    "no-max-concurrent": { says: "no bound of its own any more" },
    "no-rpm": { says: "forget its rate" },
    "no-prices": { says: "forget its prices" },
    ...PLATFORM_FLAGS,
  },
});

export const ENDPOINT_DELETE = command({
  name: "endpoint delete",
  takes: "<endpoint>",
  argument: "other",
  says: "delete an endpoint no unfinished run needs",
  flags: PLATFORM_FLAGS,
});

export const ENDPOINT_PROBE = command({
  name: "endpoint probe",
  takes: "<endpoint>",
  argument: "other",
  says: "ask an endpoint again what it supports; exit 4 if it does not answer",
  flags: PLATFORM_FLAGS,
});

export const SECRET_SET = command({
  name: "secret set",
  takes: "<name>",
  argument: "other",
  says: "keep a value environments may use; a new one replaces the old",
  more: "The value is read from stdin, or from a variable; never from the command line, which others can see.",
  flags: {
    "from-env": { value: "VAR", says: "environment variable that holds the value" },
    ...PLATFORM_FLAGS,
  },
});

export const SECRET_LIST = command({
  name: "secret list",
  takes: "",
  argument: "other",
  reads: true,
  says: "names of the secrets; nobody reads their values",
  flags: PLATFORM_FLAGS,
});

export const SECRET_DELETE = command({
  name: "secret delete",
  takes: "<name>",
  argument: "other",
  says: "delete a secret",
  flags: PLATFORM_FLAGS,
});

export const ENV_LIST = command({
  name: "env list",
  takes: "",
  argument: "other",
  reads: true,
  says: "the environments a platform has",
  flags: PLATFORM_FLAGS,
});

export const ENV_INIT = command({
  name: "env init",
  takes: "<name>",
  argument: "other",
  says: "start an environment of your own in a new folder",
  flags: {
    kind: {
      value: "KIND",
      choices: ["single-turn", "tool", "stateful"],
      says: "what to start from; default single-turn",
    },
    ...JSON_FLAG,
  },
});

export const ENV_VALIDATE = command({
  name: "env validate",
  takes: "<./folder | name>",
  argument: "environment",
  says: "play an environment with simple policies and say what is wrong with it",
  flags: {
    examples: { value: "N", says: "tasks to play; default 20" },
    args: { ...ARGS_FLAG },
    dataset: { value: "FILE", says: "JSONL rows for an environment that has none" },
    ...JSON_FLAG,
  },
});

export const SERVE = command({
  name: "serve",
  takes: "",
  argument: "other",
  says: "run the platform on this machine",
  more: `It stays up until ctrl-C; the next start goes on with the same data, which is in .rollcall, or where
ROLLCALL_DIR says.`,
  flags: {
    env: {
      value: "E",
      repeatable: true,
      says: "an environment of your own: ./folder or a package",
    },
    watch: { says: "take over the code of these environments as it changes" },
    port: { value: "P", says: "default 8787; a busy port moves to the next free one" },
    ephemeral: { says: "keep nothing" },
    timeout: { value: "S", says: "stop after this many seconds" },
    json: { says: "print {url, key, pid, directory} when ready" },
  },
});

export const START = command({
  name: "start",
  takes: "",
  argument: "other",
  says: "the same, with a demo: what npm start runs",
  more: `The demo trains the policy beside the platform, and shows its reward as it rises. The policy is weak on purpose:
format and habits, not skill. Everything the platform keeps is in memory where there is room, until the machine
restarts, and it says so; with --keep, and where there is a .rollcall already, it is on disk.`,
  flags: {
    once: { says: "stop after the demo" },
    environment: { value: "E", says: "the demo on this environment; default calculator" },
    ...LEARNING_FLAGS,
    seed: { value: "N", says: "of the demo: its tasks, its draws, its trainer" },
    keep: { says: "keep everything on disk; what is in memory moves there" },
    "no-demo": { says: "no demo" },
    port: { value: "P", says: "default 8787; a busy port moves to the next free one" },
    timeout: { value: "S", says: "stop after this many seconds" },
  },
});

export const COMPLETION = command({
  name: "completion",
  takes: "<bash | zsh | fish>",
  argument: "shell",
  says: "print a script that completes commands, flags and environments",
  more: `bash:  source <(rollcall completion bash)          in ~/.bashrc
zsh:   source <(rollcall completion zsh)           in ~/.zshrc
fish:  rollcall completion fish | source           in ~/.config/fish/config.fish`,
  flags: {
    environments: { says: "print the ids of the environments instead, if a platform runs" },
  },
});

export const COMMANDS = [
  EVAL,
  TRAIN,
  COMPARE,
  RESCORE,
  GENERATE,
  RUN_LIST,
  RUN_SHOW,
  RUN_WATCH,
  RUN_CANCEL,
  RUN_PAUSE,
  RUN_RESUME,
  RUN_UPDATE,
  RUN_RETRY,
  RUN_AUDIT,
  RUN_RESULTS,
  RUN_EXPORT,
  ROLLOUT_SHOW,
  ROLLOUT_CANCEL,
  ROLLOUT_FORK,
  DATASET_PUSH,
  DATASET_LIST,
  DATASET_SHOW,
  DATASET_DELETE,
  ENDPOINT_ADD,
  ENDPOINT_LIST,
  ENDPOINT_SHOW,
  ENDPOINT_UPDATE,
  ENDPOINT_DELETE,
  ENDPOINT_PROBE,
  SECRET_SET,
  SECRET_LIST,
  SECRET_DELETE,
  ENV_LIST,
  ENV_INIT,
  ENV_VALIDATE,
  SERVE,
  START,
  COMPLETION,
] as const satisfies readonly CommandSpec[];

/** "run list", "eval", … */
export type CommandName = (typeof COMMANDS)[number]["name"];

/** The command a line of words starts with, and the words behind its name. */
export function findCommand(words: readonly string[]): [CommandName, readonly string[]] | null {
  const found = COMMANDS.find(({ name }) => {
    return name.split(" ").every((word, at) => words[at] === word);
  });
  return found === undefined ? null : [found.name, words.slice(found.name.split(" ").length)];
}
