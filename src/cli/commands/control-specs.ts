/** What the commands take that change a run or a rollout, or take it further. */
import { RETRY_CLASSES } from "../../contract/run-control.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";

export const RUN_PAUSE = command({
  name: "run pause",
  takes: "<run>",
  argument: "other",
  says: "dispatch nothing more until it is resumed",
  more: "What runs finishes.",
  flags: PLATFORM_FLAGS,
});

export const RUN_RESUME = command({
  name: "run resume",
  takes: "<run>",
  argument: "other",
  says: "go on with a paused run",
  flags: PLATFORM_FLAGS,
});

export const RUN_UPDATE = command({
  name: "run update",
  takes: "<run>",
  argument: "other",
  says: "change how many rollouts run at once, the name, the metadata",
  flags: {
    "max-concurrent": { short: "c", value: "N", says: "from now on; what runs finishes" },
    name: { value: "TEXT", says: "a name of the run" },
    metadata: { value: "k=v", repeatable: true, says: "in place of what it carries" },
    ...PLATFORM_FLAGS,
  },
});

export const RUN_RETRY = command({
  name: "run retry",
  takes: "<run>",
  argument: "other",
  says: "another attempt for what failed or has no score",
  more: "An ended run goes on; follow it with run watch. A cancelled one stays so.",
  flags: {
    class: {
      value: "CLASS",
      choices: RETRY_CLASSES,
      repeatable: true,
      says: "only rollouts that ended for this",
    },
    ...PLATFORM_FLAGS,
  },
});

export const RESCORE = command({
  name: "rescore",
  takes: "<run>",
  argument: "other",
  says: "score what an ended run left behind, with another rubric",
  more: `A run of its own is made, followed to its end, and a table printed. The policy is not called; judges are.
Interrupted, it goes on with eval --resume.`,
  flags: {
    environment: {
      value: "E",
      says: "whose rubric: id, id@version, or a folder; default that of the run",
    },
    "env-args": {
      short: "a",
      value: "ARGS",
      repeatable: true,
      says: "its arguments: JSON, a JSON file, or k=v; default those of the run",
    },
    judge: {
      value: "NAME=MODEL@ENDPOINT",
      repeatable: true,
      says: "in place of the run's judge of this name",
    },
    "min-scored": { value: "SHARE", says: "share of the rollouts that must get a score" },
    name: { value: "TEXT", says: "a name of the new run" },
    metadata: { value: "k=v", repeatable: true, says: "in place of what the run carries" },
    ...PLATFORM_FLAGS,
    timeout: { value: "S", says: "cancel the new run after this many seconds, exit 1" },
  },
});

export const RUN_AUDIT = command({
  name: "run audit",
  takes: "<run>",
  argument: "other",
  reads: true,
  says: "compare what four records say of it; exit 1 if they differ",
  flags: PLATFORM_FLAGS,
});

export const ROLLOUT_CANCEL = command({
  name: "rollout cancel",
  takes: "<rollout>",
  argument: "other",
  says: "end one rollout early; its run goes on",
  flags: PLATFORM_FLAGS,
});

export const ROLLOUT_FORK = command({
  name: "rollout fork",
  takes: "<rollout>",
  argument: "other",
  says: "go on behind one turn of an ended rollout, in a run of its own",
  more: "The turns up to that one are kept; the next is asked for again.",
  flags: {
    turn: { value: "K", says: "the last turn that is kept; the first is 0" },
    model: { short: "m", value: "NAME", says: "another model" },
    endpoint: { short: "e", value: "NAME", says: "another endpoint, by name or id" },
    "sampling-args": { short: "S", value: "JSON", says: "in place of the run's sampling" },
    rollouts: { short: "r", value: "N", says: "how many go on from there; default 1" },
    ...PLATFORM_FLAGS,
  },
});
