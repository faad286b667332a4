/**
 * One run, kept current by its events. Each `run.progress` has the counts and the reward; the rest of the report is
 * read again every few seconds, and once more when the run has ended. The stream begins where the run was read, so
 * earlier events are not repeated. If the stream breaks off, it continues after the last received event.
 */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { RunView } from "../../../contract/run.ts";
import type { RunEvent } from "../../../contract/run-events.ts";
import { api } from "../../client.ts";
import { hasEnded, withProgress } from "./progress.ts";
import { useLastLook } from "./use-last-look.ts";

const REPORT_MS = 5000;

/** Whether events arrive: `lost` until the stream is open again. */
export type Live = "no" | "live" | "lost";

export function useRun(id: string) {
  const query = useQuery({
    queryKey: ["run", id],
    queryFn: ({ signal }) => api.runs.get(id, { signal }),
    // A cached run may be minutes old, and the stream would begin at that time.
    refetchOnMount: "always",
    refetchInterval: ({ state }) => (state.data !== undefined && !hasEnded(state.data) ? REPORT_MS : false),
  });
  const goesOn = query.data !== undefined && !hasEnded(query.data);
  useLastLook(id, goesOn);
  const live = useEvents(id, goesOn && query.isFetchedAfterMount);
  return { run: query.data, error: query.error, refetch: query.refetch, live };
}

function useEvents(id: string, wanted: boolean): Live {
  const queries = useQueryClient();
  const [live, setLive] = useState<Live>("no");
  useEffect(() => {
    if (!wanted) return setLive("no");
    const leaving = new AbortController();
    const follow = async () => {
      setLive("live");
      const after = queries.getQueryData<RunView>(["run", id])?.last_event;
      for await (const event of api.runs.events(id, { after, signal: leaving.signal })) {
        if (event.event === "run.progress") {
          queries.setQueryData<RunView>(["run", id], (run) => run && withProgress(run, event));
        } else if (changesRun(event)) {
          await queries.invalidateQueries({ queryKey: ["run", id] });
        }
      }
      await queries.invalidateQueries({ queryKey: ["run", id] });
    };
    follow().catch((error: unknown) => {
      // The run is still read regularly; only the updates in between are missing.
      if (!leaving.signal.aborted) setLive(error === undefined ? "no" : "lost");
    });
    return () => leaving.abort();
  }, [id, wanted, queries]);
  return live;
}

function changesRun({ event }: RunEvent): boolean {
  return event !== "rollout.finished" && event !== "run.progress";
}
