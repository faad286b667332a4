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
  help: "show the transcript of a rollout",
  more: "Long messages are cut on screen; --json has the full text.",
  what: "a rollout",
  ask: (client, id, options) => client.rollouts.get(id, options),
  text: transcript,
});

const CANCEL = question({
  name: "rollout cancel",
  takes: "<rollout>",
  help: "cancel a rollout; its run continues",
  what: "a rollout",
  ask: (client, id, options) => client.rollouts.cancel(id, options),
  text: (rollout) => `${rollout.id}: ${statusText(rollout)}`,
});

function statusText({ status, outcome, reason }: RolloutView): string {
  if (outcome === null) return status === "scoring" ? "it has already answered" : "cancelling";
  return reason === null ? outcome : `${outcome}: ${reason}`;
}

const FORK = command({
  name: "rollout fork",
  takes: "<rollout>",
  help: "fork an ended rollout after one of its turns, in a new run",
  more: "The turns up to that one are kept; the next one is sampled again.",
  flags: {
    turn: { value: "K", help: "the last turn to keep; the first is 1" },
    model: { short: "m", value: "NAME", help: "another model" },
    endpoint: { short: "e", value: "NAME", help: "another endpoint, by name or id" },
    "sampling-args": { short: "S", value: "JSON", help: "instead of the run's sampling" },
    rollouts: { short: "r", value: "N", help: "number of rollouts that continue from there; default 1" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("a rollout");
    const turn = line.count("turn", 1);
    if (turn === undefined) throw usageError("--turn: is required; the first turn is 1", "turn");
    const sampling = line.text("sampling-args");
    const request: ForkRequestInput = {
      // The API has an index.
      turn: turn - 1,
      ...defined({
        model: line.text("model"),
        endpoint: line.text("endpoint"),
        rollouts: line.count("rollouts", 1),
        // The API refuses members that it does not have.
        sampling: sampling === undefined ? undefined : (jsonObject(sampling, "sampling-args") as Sampling),
      }),
    };
    return onPlatform(line, async ({ client, signal }) => {
      const run = await client.rollouts.fork(id, request, { signal });
      return { json: run, text: () => `${run.id} continues after turn ${turn} of ${id}` };
    });
  },
});

export const ROLLOUT_COMMANDS = [SHOW, CANCEL, FORK] as const;
