/** `rollcall rollout cancel | fork`. */

import type { RolloutView } from "../../contract/run.ts";
import type { ForkRequestInput } from "../../contract/run-control.ts";
import type { Sampling } from "../../contract/sampling.ts";
import { jsonObject } from "../argument-values.ts";
import { type CommandLine, readCommandLine } from "../command-line.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { ROLLOUT_CANCEL, ROLLOUT_FORK } from "./control-specs.ts";

export function rolloutCancelCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ROLLOUT_CANCEL, argv);
  const id = line.one("a rollout");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const rollout = await client.cancelRollout(id, { signal });
    answer(rollout, () => `${id}: ${standing(rollout)}`);
    return EXIT.good;
  });
}

export function rolloutForkCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ROLLOUT_FORK, argv);
  const id = line.one("a rollout");
  const request = forkRequest(line);
  return onPlatform(line, async ({ client, signal, answer }) => {
    const run = await client.forkRollout(id, request, { signal });
    answer(run, () => `${run.id} goes on behind turn ${request.turn} of ${id}`);
    return EXIT.good;
  });
}

function forkRequest(line: CommandLine<keyof typeof ROLLOUT_FORK.flags>): ForkRequestInput {
  const turn = line.count("turn", 0);
  if (turn === undefined) throw usageError("--turn: say behind which turn, the first is 0", "turn");
  const model = line.text("model");
  const endpoint = line.text("endpoint");
  const rollouts = line.count("rollouts", 1);
  const sampling = line.text("sampling-args");
  return {
    turn,
    ...(model !== undefined && { model }),
    ...(endpoint !== undefined && { endpoint }),
    ...(rollouts !== undefined && { rollouts }),
    // The API says which of its members it does not know.
    ...(sampling !== undefined && { sampling: jsonObject(sampling, "sampling-args") as Sampling }),
  };
}

function standing({ status, outcome, reason }: RolloutView): string {
  if (outcome === null) return status === "scoring" ? "it has answered already" : "cancelling";
  return reason === null ? outcome : `${outcome}: ${reason}`;
}
