/**
 * One run, kept current by its events. Counts and the reward come with each `run.progress`; the rest of the report is read
 * again every few seconds, and once more when the run has ended. A stream that breaks off goes on behind the last event
 * that was seen, also where the page was left and comes back.
 */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { RunView } from "../../../contract/run.ts";
import type { RunEvent } from "../../../contract/run-events.ts";
import { api } from "../../client.ts";
import { hasEnded, withProgress } from "./progress.ts";
import { useLastLook } from "./use-last-look.ts";

const REPORT_MS = 5000;

/** The last event seen of each run that this tab has followed. */
const seen = new Map<string, number>();
const SEEN_MOST = 100;

/** Whether events come in: `lost` until the stream is opened again. */
export type Live = "no" | "live" | "lost";

export function useRun(id: string) {
  const query = useQuery({
    queryKey: ["run", id],
    queryFn: ({ signal }) => api.getRun(id, { signal }),
    refetchInterval: ({ state }) => (state.data !== undefined && !hasEnded(state.data) ? REPORT_MS : false),
  });
  const goesOn = query.data !== undefined && !hasEnded(query.data);
  useLastLook(id, goesOn);
  const live = useEvents(id, goesOn);
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
      for await (const event of api.events(id, { after: seen.get(id), signal: leaving.signal })) {
        remember(id, event.id);
        if (event.event === "run.progress") {
          queries.setQueryData<RunView>(["run", id], (run) => run && withProgress(run, event));
        } else if (changesRun(event)) {
          await queries.invalidateQueries({ queryKey: ["run", id] });
        }
      }
      await queries.invalidateQueries({ queryKey: ["run", id] });
    };
    follow().catch((error: unknown) => {
      // What is shown goes on being read by itself; only the seconds between are lost.
      if (!leaving.signal.aborted) setLive(error === undefined ? "no" : "lost");
    });
    return () => leaving.abort();
  }, [id, wanted, queries]);
  return live;
}

function remember(id: string, event: number): void {
  seen.delete(id);
  seen.set(id, event);
  const [oldest] = seen.keys();
  if (seen.size > SEEN_MOST && oldest !== undefined) seen.delete(oldest);
}

function changesRun({ event }: RunEvent): boolean {
  return event !== "rollout.finished" && event !== "run.progress";
}
