/**
 * A model that holds the first turn of every rollout until all are in flight at the same time. Then each turn is answered
 * after a time of its own, seeded.
 */
import { setTimeout as pause } from "node:timers/promises";
import { seededRandom } from "../../src/contract/random.ts";
import { type ScriptedModel, startScriptedModel } from "../../test/fakes/scripted-model.ts";
import { modelReply } from "../workload.ts";

/** A turn takes this long on average, from half to one and a half times as long. */
const SPREAD = 0.5;

export interface Shape {
  /** Rollouts at once. */
  readonly rollouts: number;
  readonly turns: number;
  /** The mean time of a turn after all are in flight. */
  readonly turnMs: number;
}

/** Milliseconds of the next turn; the same for the same shape. */
export function turnTimes({ turnMs }: Shape): () => number {
  const random = seededRandom("turns at once");
  return () => turnMs * (1 - SPREAD + 2 * SPREAD * random());
}

export interface HeldModel {
  readonly url: string;
  /** Resolves when so many rollouts wait for their first turns. */
  readonly allInFlight: Promise<void>;
  arrived(): number;
  /** Answers what is held. */
  letGo(): void;
  stop(): Promise<void>;
}

export async function startHeldModel(shape: Shape): Promise<HeldModel> {
  const full = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const next = turnTimes(shape);
  let arrived = 0;
  const model: ScriptedModel = await startScriptedModel({
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
  return {
    url: model.url,
    allInFlight: full.promise,
    arrived: () => arrived,
    letGo: gate.resolve,
    stop: model.stop,
  };
}
