/** The tools that environments offered in a rollout's state: asked with the effect that left it, and kept with it. */
import type { JsonObject } from "../../contract/json.ts";
import type { EnvironmentCode, OfferedTools, Performed } from "../../core/protocol/environment-code.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";

/** By state: another process reads it from disk, and asks again. */
const offered = new WeakMap<JsonObject, OfferedTools>();

export function noteOffered({ event, tools }: Performed): void {
  if ("state" in event && tools !== null) offered.set(event.state, tools);
}

/** The tools for the rollout's next call. */
export async function toolsFor(environment: EnvironmentCode, rollout: Rollout): Promise<OfferedTools> {
  const known = offered.get(rollout.state);
  if (known !== undefined) return known;
  const tools = await environment.tools(rollout);
  offered.set(rollout.state, tools);
  return tools;
}
