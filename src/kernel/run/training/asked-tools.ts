/** The tools a rollout's model is told of. */
import type { ToolDefinition } from "../../../contract/messages.ts";
import type { RolloutSpec } from "../../messages/wire.ts";

/**
 * In a training run none is strict: what an engine holds to a grammar is sampled from another distribution than the weights
 * give, and its logprobs are of that one.
 */
export function askedTools(
  { policy_version }: Pick<RolloutSpec, "policy_version">,
  offered: readonly ToolDefinition[],
): readonly ToolDefinition[] {
  if (policy_version === undefined) return offered;
  return offered.map(({ function: { strict: _, ...asked }, ...tool }) => ({
    ...tool,
    function: asked,
  }));
}
