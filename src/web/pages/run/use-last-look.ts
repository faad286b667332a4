import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

/** Reads lists and histograms of a run again while it runs, and once more when it has ended. */
export function useLastLook(run: string, live: boolean): void {
  const queries = useQueryClient();
  const wasLive = useRef(live);
  useEffect(() => {
    if (wasLive.current && !live) {
      for (const what of ["rollouts", "groups", "histogram"]) {
        queries.invalidateQueries({ queryKey: [what, run] }).catch(reportError);
      }
    }
    wasLive.current = live;
  }, [queries, run, live]);
}
