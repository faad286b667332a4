/** The query of every step of a training so far; while the run is in progress, it reads the steps after the last one. */
import { queryOptions } from "@tanstack/react-query";
import type { RunView } from "../../../contract/run.ts";
import type { StepMetrics } from "../../../contract/training-view.ts";
import { api } from "../../client.ts";

const STEPS_A_PAGE = 1000;
/** More steps are not read: a chart of them has several per pixel. */
const MOST_STEPS = 20_000;
const REFETCH_MS = 3000;
/** A step may be written more than once, so the last few are read again. */
const AGAIN = 5;

export function stepsQuery({ id, finished_at }: Pick<RunView, "id" | "finished_at">) {
  const queryKey = ["run", id, "series"] as const;
  return queryOptions({
    queryKey,
    queryFn: ({ signal, client }) => {
      return readSteps(id, client.getQueryData<readonly StepMetrics[]>(queryKey) ?? [], signal);
    },
    refetchInterval: finished_at === null ? REFETCH_MS : false,
  });
}

async function readSteps(
  runId: string,
  known: readonly StepMetrics[],
  signal: AbortSignal,
): Promise<readonly StepMetrics[]> {
  const rows = known.slice(0, -AGAIN);
  for (let after = rows.at(-1)?.step ?? -1; ; ) {
    const query = { limit: STEPS_A_PAGE, ...(after >= 0 && { after_step: after }) };
    const page = await api.runs.metrics(runId, query, { signal });
    rows.push(...page.data);
    const last = page.data.at(-1);
    if (!page.has_more || last === undefined || rows.length >= MOST_STEPS) return rows;
    after = last.step;
  }
}
