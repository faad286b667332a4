/** Reads the runs of a comparison. */
import { queryOptions, useQueries } from "@tanstack/react-query";
import { api } from "../../client.ts";

export const runQuery = (id: string) =>
  queryOptions({ queryKey: ["run", id], queryFn: ({ signal }) => api.runs.get(id, { signal }) });

export function useComparedRuns(ids: readonly string[]) {
  const queries = useQueries({ queries: ids.map(runQuery) });
  return { runs: queries.flatMap(({ data }) => data ?? []), isPending: queries.some(({ isPending }) => isPending) };
}
