/** The outcome of one call of a judge, as plain values: the caller and the object that stores judgements differ. */
import type { Usage } from "../../contract/messages.ts";
import type { Spending } from "../../core/costs/call-budget.ts";
import type { JudgementValue } from "../../core/rubrics/judgement.ts";
import type { JudgeAsk, JudgeResult } from "../../core/rubrics/judges.ts";
import type { RunSpec, ScoringGroup } from "./wire.ts";

export type AskOutcome =
  | {
      readonly kind: "given";
      readonly value: JudgementValue;
      readonly reason: string | null;
      readonly usage: Usage | null;
      /** As `keptReply` stores it. */
      readonly reply?: string | undefined;
      /** No call was made: the judgement was stored already. */
      readonly cached?: boolean;
    }
  | {
      readonly kind: "failed";
      readonly error: string;
      readonly retryable: boolean;
      /** The wait that the endpoint asked for. */
      readonly retry_after_ms: number | null;
      /** A reply came, and it is not a valid judgement. */
      readonly replied?: boolean;
      /** That reply, as `keptReply` stores it. */
      readonly reply?: string | undefined;
      /** Its whole time passed without any reply. */
      readonly silent?: boolean;
      readonly usage: Usage | null;
      readonly status?: number;
      /** The endpoint refused the key: every other call would be refused too. */
      readonly unauthorized?: boolean;
      /** The endpoint replied 403, which may be about the key or about this question. */
      readonly forbidden?: boolean;
      /** The endpoint has a new key: this call does not count as a retry. */
      readonly free?: boolean;
      /** The call was sent, and it is unknown whether the endpoint processed it. */
      readonly lost?: boolean;
    };

/** What the run has recorded about an ask: `calls` made so far, and `replies` received. */
export interface Recorded {
  readonly calls: number;
  readonly replies: number;
}

/**
 * `recorded`: the record when the call was made. By it the run recognises a call that it has counted already. Absent if
 * no call was made.
 */
export type ReportedOutcome = AskOutcome & {
  readonly recorded?: Recorded | undefined;
  /** From sending the call to its end. */
  readonly took_ms?: number;
};

/** An ask without its text: everything that a run stores of it. */
export interface JudgedAsk extends Pick<JudgeAsk, "key" | "judge" | "pass" | "rollout_id" | "left_out" | "seed"> {
  readonly outcome: ReportedOutcome;
}

/** A judgement by the key of its ask. */
export type KnownResult = readonly [key: string, judgement: JudgeResult];

/** The state of the asks after their outcomes were recorded. */
export interface JudgedReply {
  /** Asks that are settled, with a judgement or a final failure. */
  readonly settled: readonly KnownResult[];
  /** When the first of the others may be called again (epoch ms); null if there is none. */
  readonly next_at: number | null;
  /** False: another consumer has the scoring group by now, or none does. */
  readonly go_on: boolean;
  /** The result is no longer needed: the run is cancelled or has ended. */
  readonly over: boolean;
}

/** Everything that is needed to call the judges of a scoring group. */
export interface JudgingScoringGroup {
  readonly spec: RunSpec;
  readonly unit: ScoringGroup;
  readonly claim: number;
  /** The endpoint whose judges are called now. Judges of another endpoint follow later. */
  readonly endpoint_id: string;
  readonly calls: number;
  /** Calls at the same time. */
  readonly lanes: number;
  /** A call that takes longer is aborted, because others wait for it. Absent: each call has its whole time. */
  readonly patience_ms?: number;
  readonly settled: readonly KnownResult[];
  /** What its calls may spend during this claim, in micro-dollars; absent in a run without a cap. */
  readonly allowance_micros?: number;
  /** Asks that failed so far: calls, replies that were not valid, and when each may be called again (epoch ms). */
  readonly failed: readonly (Recorded & { readonly key: string; readonly next_at: number })[];
}

/** A scoring group that waits for judgements: from which endpoint, at least how many calls, and not before when. */
export interface JudgementRequest {
  readonly unit: number;
  readonly endpoint_id: string;
  readonly calls: number;
  readonly not_before?: number;
  /** The claim of the consumer that gives the group back; absent if the group was just found to need judgements. */
  readonly claim?: number;
  /** It was given back because its judge did not answer within `patience_ms`, and other groups wait. */
  readonly silent?: boolean;
  /** Its scores take more work than the queue of fast judges allows: the run's groups use the queue of slow judges. */
  readonly heavy?: boolean;
  /** In a run with a cap: the most that those calls may cost, all retries included, in micro-dollars. */
  readonly bound_micros?: number;
  /** What its calls used during the claim. Absent: unknown. */
  readonly spent?: Spending;
  /** It was given back because something failed. After a number of such failures it is given up. */
  readonly failed?: boolean;
}

/** What the calls for a scoring group used, reported by the holder of the claim. */
export interface ClaimSpending {
  readonly unit: number;
  readonly claim: number;
  readonly spent: Spending;
}
