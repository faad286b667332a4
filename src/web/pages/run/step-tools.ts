/** Counts the tool calls of some of a step's rollouts, and how many of them failed, from their outlines. */
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import { api } from "../../client.ts";
import { readEach } from "./read-failed-calls.ts";
import { countTools, type ToolCalls } from "./step-facts.ts";

/** The most rollouts of a step that are read, and the most turns of each. */
export const ROLLOUTS_READ = 24;
const TURNS_READ = 200;

export async function readStepTools(
  rows: readonly RolloutSummary[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ToolCalls>> {
  const counts = new Map<string, ToolCalls>();
  const read = rows.filter(({ turns }) => turns !== null && turns > 0).slice(0, ROLLOUTS_READ);
  await readEach(read, async ({ id }) => {
    const { data } = await api.rollouts.outline(id, { limit: TURNS_READ }, { signal });
    countTools(id, data, counts);
  });
  return counts;
}
