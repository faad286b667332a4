/** The requests for usage, each with its key in the cache. */
import type { UsageGroup } from "../../../billing/wire.ts";
import type { UsageQuery } from "../../../sdk/options.ts";
import { api } from "../../client.ts";
import type { UsageLimits } from "./names.ts";
import { DAY_S, DAYS, type Period } from "./period.ts";

/** Usage is copied from the ledger once a minute. */
const COPIED_MS = 30_000;

export function usageQuery(ask: UsageQuery) {
  return {
    queryKey: ["usage", ask],
    queryFn: ({ signal }: { readonly signal: AbortSignal }) => api.usage.list(ask, { signal }),
    refetchInterval: COPIED_MS,
  };
}

/** Each day of the chart, the last of which is today. */
export function daysAsk(now: number, only: UsageLimits): UsageQuery {
  const today = now - (now % DAY_S);
  const start_time = today - (DAYS - 1) * DAY_S;
  return { ...only, bucket_width: "1d", start_time, end_time: today + DAY_S, limit: DAYS };
}

export function hoursAsk({ start, end }: Period, only: UsageLimits): UsageQuery {
  return { ...only, bucket_width: "1h", start_time: start, end_time: end, limit: 24 };
}

export function divisionsAsk({ start, end }: Period, group: UsageGroup, only: UsageLimits): UsageQuery {
  return { ...only, bucket_width: "1d", start_time: start, end_time: end, limit: DAYS, group_by: [group] };
}
