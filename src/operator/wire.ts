/** What `rollcall deploy` and the Worker of the same release agree on. It is not part of the public API. */
import * as z from "zod";

/** Where the model of the smoke run is, below the address of the deployment. Anybody may call it. */
export const SMOKE_MODEL_PATH = "/operator/smoke/v1";
/** What it answers, whatever it is asked. */
export const SMOKE_ANSWER = "ready";

/** A request reads one page of a drain: `?after=`; with `&begin=` it begins it. Only a holder of ROLLCALL_SECRET can call it. */
export const DRAIN_PATH = "/operator/drain";
/** Below it: a request ends the drain, and notifies the organisations of one page. */
export const END_DRAIN = "/end";

/** About one page of unfinished runs. */
export const DrainPage = z.object({
  /** Rollouts that run, or that have answered and are scored. */
  in_flight: z.number(),
  /** Rollouts that may still start by the leases of their organisations. */
  granted: z.number(),
  /** Runs with rollouts in flight, and runs whose objects do not answer. */
  busy: z.array(z.string()),
  silent: z.array(z.string()),
  /** `after` of the next page; null after the last. */
  next: z.string().nullable(),
});
export type DrainPage = z.output<typeof DrainPage>;
export const ResumedPage = DrainPage.pick({ next: true });
