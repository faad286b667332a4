/** What came of asking a judge once, as plain values: it is asked elsewhere than where verdicts are kept. */
import type { Usage } from "../../contract/messages.ts";
import type { Spending } from "../../core/costs/allowance.ts";
import type { JudgeAsk, JudgeResult } from "../../core/rubrics/judges.ts";
import type { VerdictValue } from "../../core/rubrics/verdict.ts";
import type { RunSpec, Unit } from "./wire.ts";

export type AskOutcome =
  | {
      readonly kind: "given";
      readonly value: VerdictValue;
      readonly reason: string | null;
      readonly usage: Usage | null;
      /** Nobody was asked: the verdict was there already. */
      readonly cached?: boolean;
    }
  | {
      readonly kind: "failed";
      readonly error: string;
      readonly retryable: boolean;
      /** What the endpoint asked for. */
      readonly retry_after_ms: number | null;
      /** There was a reply, and it is no verdict. */
      readonly replied?: boolean;
      /** Its whole time has passed without a word. */
      readonly silent?: boolean;
      readonly usage: Usage | null;
      readonly status?: number;
      /** The endpoint refused the key: every other ask would be refused alike. */
      readonly unauthorized?: boolean;
      /** It replied 403, which may be about the key or about this question. */
      readonly forbidden?: boolean;
      /** With another key: none of the tries that are counted. */
      readonly free?: boolean;
      /** It left, and nobody knows what its endpoint made of it. */
      readonly lost?: boolean;
    };

/** What the run had on record of an ask: `calls` made so far, and how many `replies` they got. */
export interface Recorded {
  readonly calls: number;
  readonly replies: number;
}

/**
 * `recorded`: as it was when the call was made, by which the run knows a call that it has counted. Absent of what was not
 * asked for.
 */
export type ToldOutcome = AskOutcome & {
  readonly recorded?: Recorded | undefined;
  /** From the call's departure to its end. */
  readonly took_ms?: number;
};

/** An ask without what it says: all that a run keeps of it. */
export interface JudgedAsk extends Pick<JudgeAsk, "key" | "judge" | "pass" | "rollout_id" | "left_out" | "seed"> {
  readonly outcome: ToldOutcome;
}

/** A verdict by the key of its ask. */
export type KnownResult = readonly [key: string, verdict: JudgeResult];

/** Where asks stand after their outcomes were taken in. */
export interface JudgedReply {
  /** Those that are settled, for better or worse. */
  readonly settled: readonly KnownResult[];
  /** When the first of the others may be asked again (epoch ms); null when there is none. */
  readonly next_at: number | null;
  /** False: the unit is somebody else's, or nobody's, by now. */
  readonly go_on: boolean;
  /** Nobody waits for its judges any more: it is cancelled, or has ended. */
  readonly over: boolean;
}

/** What asking for a unit's verdicts takes. */
export interface JudgingUnit {
  readonly spec: RunSpec;
  readonly unit: Unit;
  readonly claim: number;
  /** Whose judges are to be asked; the judges of another endpoint come after. */
  readonly endpoint_id: string;
  readonly calls: number;
  /** Asks at once. */
  readonly lanes: number;
  /** A call that takes longer is hung up on: others wait behind it. Absent: it has its whole time. */
  readonly patience_ms?: number;
  readonly settled: readonly KnownResult[];
  /** What its asks may spend while this claim lasts, in micro-dollars; absent in a run without a cap. */
  readonly allowance_micros?: number;
  /** Asks that failed so far: calls, replies that were no verdict, and when they may be made again (epoch ms). */
  readonly failed: readonly (Recorded & { readonly key: string; readonly next_at: number })[];
}

/** A unit that waits for judgements: by the judges of which endpoint, how many at least, and not before when. */
export interface JudgementRequest {
  readonly unit: number;
  readonly endpoint_id: string;
  readonly calls: number;
  readonly not_before?: number;
  /** Of whoever gives the unit back; absent for one that has just been found to need judgements. */
  readonly claim?: number;
  /** It was given back because its judge did not answer in time for those who wait behind it. */
  readonly silent?: boolean;
  /** Its scores take more work than units of quick judges may: the run's units wait with those of slow judges. */
  readonly heavy?: boolean;
  /** In a run with a cap: what those calls may take at most, all tries included, in micro-dollars. */
  readonly bound_micros?: number;
  /** What its asks took while the claim lasted. Absent: nobody knows. */
  readonly spent?: Spending;
  /** It was given back because something broke: so many times, and it is given up. */
  readonly failed?: boolean;
}

/** What asking for a unit's judgements took, by whoever had the claim. */
export interface ClaimSpending {
  readonly unit: number;
  readonly claim: number;
  readonly spent: Spending;
}
