/** One slice of a job: its inputs and its outcome. */
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import type { Counts, Job, Jobs, Progress } from "./jobs.ts";

export interface Slice {
  readonly env: Env;
  readonly jobs: Pick<Jobs, "add" | "children" | "others" | "save">;
  readonly subrequests: Subrequests;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** `go`: the next slice follows immediately. `wait`: the step is repeated at that time. `end`: nothing is left. */
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
