/** Counts the tool calls of some of a step's rollouts, and how many of them failed, from their outlines. */
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import { api } from "../../client.ts";
import { countTools, type ToolCalls } from "./step-facts.ts";

/** The most rollouts of a step that are read, how many at once, and the most turns of each. */
export const ROLLOUTS_READ = 24;
const AT_ONCE = 4;
const TURNS_READ = 200;

export async function readStepTools(
  rows: readonly RolloutSummary[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ToolCalls>> {
  const counts = new Map<string, ToolCalls>();
  const left = rows
    .filter(({ turns }) => turns !== null && turns > 0)
    .slice(0, ROLLOUTS_READ)
    .values();
  const work = async () => {
    for (const { id } of left) {
      const { data } = await api.rollouts.outline(id, { limit: TURNS_READ }, { signal });
      countTools(data, counts);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return counts;
}
