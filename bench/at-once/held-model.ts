/**
 * A model that holds the first turn of every rollout until all are in flight at the same time. Then each turn is answered
 * after a time of its own, seeded.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type ScriptedModel, startScriptedModel } from "../../test/fakes/scripted-model.ts";
import { modelReply } from "../workload.ts";
import { type Shape, turnTimes } from "./shape.ts";

export interface HeldModel extends Pick<ScriptedModel, "url" | "stop"> {
  /** Resolves when so many rollouts wait for their first turns. */
  readonly allInFlight: Promise<void>;
  /** Answers what is held. */
  readonly letGo: () => void;
}

export async function startHeldModel(shape: Shape): Promise<HeldModel> {
  const full = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const next = turnTimes(shape);
  let arrived = 0;
  const { url, stop } = await startScriptedModel({
    reply: async ({ messages, begin }) => {
      // As a server that streams: its headers are there before its first token.
      begin();
      arrived += 1;
      if (arrived === shape.rollouts) full.resolve();
      await gate.promise;
      await pause(next());
      return modelReply(shape.turns, messages);
    },
  });
  return { url, stop, allInFlight: full.promise, letGo: gate.resolve };
}
