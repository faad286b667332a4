/** Reads the outline of a rollout for its timeline, page by page. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import type { RolloutHead } from "../../../contract/turns.ts";
import { api } from "../../client.ts";
import { OutlineBuild, type OutlineData } from "./outline.ts";

const PER_PAGE = 5000;
/** A long rollout in progress is read again every time this many turns were added. */
const STEP = 500;

export function useOutline(head: RolloutHead): UseQueryResult<OutlineData> {
  const { id, n_turns, status } = head;
  const shown = status === "done" || n_turns <= STEP ? n_turns : n_turns - (n_turns % STEP);
  return useQuery({
    queryKey: ["outline", id, shown],
    queryFn: ({ signal }) => readOutline(id, shown, signal),
    enabled: shown > 0,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 10_000,
    refetchOnWindowFocus: false,
  });
}

async function readOutline(id: string, count: number, signal: AbortSignal): Promise<OutlineData> {
  const build = new OutlineBuild(count);
  while (build.read < count) {
    const query = { limit: PER_PAGE, ...(build.read > 0 && { after: build.read - 1 }) };
    const { data, has_more } = await api.rollouts.outline(id, query, { signal });
    for (const turn of data) build.add(turn);
    if (!has_more || data.length === 0) break;
  }
  return build.end();
}
