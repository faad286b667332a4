/** The tools offered to a rollout's model. */
import type { ToolDefinition } from "../../../contract/messages.ts";
import type { RolloutSpec } from "../../messages/wire.ts";

/**
 * In a training run `strict` is removed. An engine that enforces a grammar samples from another distribution than that
 * of the weights, and its logprobs belong to that distribution.
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
