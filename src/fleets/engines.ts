/** Translates the steps of an update into requests to an engine. */

import type { FleetUpdate } from "../contract/fleet.ts";
import type { WeightOrder } from "../kernel/messages/run-fleet.ts";
import type { Step, StepOutcome } from "./driving.ts";
import type { Engine, EngineReply } from "./engine-calls.ts";
import { loadWeights, unloadAdapter, type WeightLoad } from "./engine-load.ts";
import { pauseEngine, resumeEngine } from "./engine-pause.ts";
import { adapterName, type FleetState } from "./state.ts";
import { labelOf } from "./weights.ts";

/** The steps that change something at an engine. */
export type Change = Exclude<Step, { do: "probe" }>;

const UNLOAD_MS = 60_000;

/** The timeout of a step, in milliseconds. */
export function timeOf({ update }: FleetState, { do: what }: Change): number {
  const { pause_s, update_s, resume_s } = update;
  if (what === "unload") return UNLOAD_MS;
  return 1000 * { pause: pause_s, load: update_s, resume: resume_s }[what];
}

/** Never throws, and ends within the step's timeout. */
export async function change(engine: Engine, state: FleetState, step: Change): Promise<StepOutcome> {
  const { pause } = state.update;
  const timeout_ms = timeOf(state, step);
  switch (step.do) {
    case "pause":
      return outcomeOf(await pauseEngine(engine, { pause, timeout_ms }));
    case "resume":
      return outcomeOf(await resumeEngine(engine, timeout_ms));
    case "unload":
      return outcomeOf(await unloadAdapter(engine, adapterName(state.update, step.weights), timeout_ms));
    case "load": {
      const load = loadOf(state.update, step.order);
      if (typeof load === "string") return { ok: false, message: load };
      return outcomeOf(await loadWeights(engine, load, timeout_ms));
    }
  }
}

function outcomeOf(reply: EngineReply): StepOutcome {
  return reply.kind === "done" ? { ok: true, message: "" } : { ok: false, message: reply.message };
}

/** The weights to load, or the reason why they cannot be loaded. */
function loadOf(update: FleetUpdate, order: WeightOrder): WeightLoad | string {
  const { mode } = update;
  const { location, version } = order;
  if (location === null) return `version ${version} was published without the location of its weights`;
  switch (mode) {
    case "lora_versioned":
      return { mode, adapter: adapterName(update, order), location };
    case "reload":
      return { mode, location, label: labelOf(order) };
    case "prime_rl":
      return { mode, location };
    case "reported":
      return "somebody else is changing its weights";
  }
}
