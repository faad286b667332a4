/** What this deployment offers to environments, before `needs` narrows it. */
import type { OfferedCapabilities } from "../core/environments/capabilities.ts";

/** Needs a run may name here; another is refused when the run is created. */
export const OFFERED_NEEDS: readonly string[] = ["fetch"];

export function rolloutCapabilities(now: () => number): Omit<OfferedCapabilities, "random"> {
  return {
    now,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      return { status: response.status, text: () => response.text() };
    },
  };
}
