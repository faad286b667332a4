/** One slice of a job: what it works with, and what comes of it. */
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import type { Counts, Job, Jobs, Progress } from "./jobs.ts";

export interface Slice {
  readonly env: Env;
  readonly jobs: Pick<Jobs, "add" | "children" | "others" | "save">;
  readonly subrequests: Subrequests;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** `go`: the next slice follows at once. `wait`: the same step again, at that time. `end`: there is nothing left of it. */
export type Outcome =
  | { readonly kind: "go"; readonly progress: Progress }
  | { readonly kind: "wait"; readonly until: number }
  | { readonly kind: "end"; readonly counts: Counts };

export function goOn(progress: Job): Outcome {
  return { kind: "go", progress };
}

export function waitUntil(until: number): Outcome {
  return { kind: "wait", until };
}

export const ENDED = { kind: "end" } as const;
