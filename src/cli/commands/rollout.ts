/** `rollcall rollout show | cancel | fork`. */
import type { RolloutView } from "../../contract/run.ts";
import type { ForkRequestInput } from "../../contract/run-control.ts";
import type { Sampling } from "../../contract/sampling.ts";
import { defined, jsonObject } from "../argument-values.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { onPlatform, question } from "../on-platform.ts";
import { transcript } from "../terminal/transcript.ts";

const SHOW = question({
  name: "rollout show",
  takes: "<rollout>",
  reads: true,
  says: "the transcript of one rollout",
  more: "Long messages are cut on screen; --json has everything.",
  what: "a rollout",
  ask: (client, id, options) => client.rollouts.get(id, options),
  text: transcript,
});

const CANCEL = question({
  name: "rollout cancel",
  takes: "<rollout>",
  says: "end one rollout early; its run goes on",
  what: "a rollout",
  ask: (client, id, options) => client.rollouts.cancel(id, options),
  text: (rollout) => `${rollout.id}: ${statusText(rollout)}`,
});

function statusText({ status, outcome, reason }: RolloutView): string {
  if (outcome === null) return status === "scoring" ? "it has answered already" : "cancelling";
  return reason === null ? outcome : `${outcome}: ${reason}`;
}

const FORK = command({
  name: "rollout fork",
  takes: "<rollout>",
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
  run(line) {
    const id = line.one("a rollout");
    const turn = line.count("turn", 0);
    if (turn === undefined) throw usageError("--turn: say behind which turn, the first is 0", "turn");
    const sampling = line.text("sampling-args");
    const request: ForkRequestInput = {
      turn,
      ...defined({
        model: line.text("model"),
        endpoint: line.text("endpoint"),
        rollouts: line.count("rollouts", 1),
        // The API says which of its members it does not know.
        sampling: sampling === undefined ? undefined : (jsonObject(sampling, "sampling-args") as Sampling),
      }),
    };
    return onPlatform(line, async ({ client, signal }) => {
      const run = await client.rollouts.fork(id, request, { signal });
      return { json: run, text: () => `${run.id} goes on behind turn ${turn} of ${id}` };
    });
  },
});

export const ROLLOUT_COMMANDS = [SHOW, CANCEL, FORK] as const;
