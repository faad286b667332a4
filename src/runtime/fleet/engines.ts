/** The steps of an update, as an engine is asked for them. */

import { initInfoOf, pauseEngine, resumeEngine } from "../../clients/engine.ts";
import type { Engine, EngineReply } from "../../clients/engine-calls.ts";
import { loadWeights, unloadAdapter, type WeightLoad } from "../../clients/engine-load.ts";
import type { FleetUpdate } from "../../contract/fleet.ts";
import { isRecord } from "../../contract/json.ts";
import type { WeightOrder } from "../contract/fleet-wire.ts";
import type { Step, StepOutcome } from "./driving.ts";
import { adapterName, type FleetState, type Replica } from "./state.ts";
import { labelOf } from "./weights.ts";

/** What changes something at an engine. */
export type Change = Exclude<Step, { do: "probe" }>;

const UNLOAD_MS = 60_000;

/** Milliseconds that a step may take. */
export function timeOf({ update }: FleetState, { do: what }: Change): number {
  const { pause_s, update_s, resume_s } = update;
  if (what === "unload") return UNLOAD_MS;
  return 1000 * { pause: pause_s, load: update_s, resume: resume_s }[what];
}

/** Never throws; over in its time. */
export async function change(engine: Engine, state: FleetState, replica: Replica, step: Change): Promise<StepOutcome> {
  const { mode, pause } = state.update;
  const timeout_ms = timeOf(state, step);
  switch (step.do) {
    case "pause":
      return outcomeOf(await pauseEngine(engine, { mode, pause, timeout_ms }));
    case "resume":
      return outcomeOf(await resumeEngine(engine, { mode, timeout_ms }));
    case "unload":
      return outcomeOf(await unloadAdapter(engine, adapterName(state.update, step.weights), timeout_ms));
    case "load": {
      const load = loadOf(state, replica, step.order);
      if (typeof load === "string") return { ok: false, message: load };
      return outcomeOf(await loadWeights(engine, load, timeout_ms));
    }
  }
}

function outcomeOf(reply: EngineReply): StepOutcome {
  return reply.kind === "done" ? { ok: true, message: "" } : { ok: false, message: reply.message };
}

const ONE_GROUP =
  "its fleet has several replicas, and update.init_info.by_replica has no member for it: they are updated one after " +
  "another, and a group that all of them share would wait for the others for ever";

/** Whether nothing says that it has a transfer group of its own with the trainer. */
function isShared(init_info: FleetUpdate["init_info"], name: string, count: number): boolean {
  const groups = init_info?.["by_replica"];
  return count > 1 && !(isRecord(groups) && Object.hasOwn(groups, name));
}

/** What is to be loaded, or why it cannot be. */
function loadOf(
  { update, replicas }: FleetState,
  { name, initialized }: Replica,
  order: WeightOrder,
): WeightLoad | string {
  const { mode, init_info } = update;
  const count = Object.keys(replicas).length;
  const { location, version, transfer } = order;
  const label = labelOf(order);
  if (mode === "transfer") {
    if (isShared(init_info, name, count)) return ONE_GROUP;
    if (transfer === undefined) return `version ${version} was published without what its transfer needs`;
    return { mode, update_info: transfer, init_info: initInfoOf(init_info, name), initialized, label };
  }
  if (location === null) return `version ${version} was published without the location of its weights`;
  switch (mode) {
    case "lora_versioned":
      return { mode, adapter: adapterName(update, order), location };
    case "lora_in_place":
      return { mode, adapter: update.adapter, location };
    case "reload":
      return { mode, location, label };
    case "prime_rl":
      return { mode, location };
    case "reported":
      return "its weights are changed by somebody else";
  }
}
