/** What a run requests from its endpoint's object, what is granted, and the outcomes of calls. */

import type { SerializedError } from "../../contract/errors.ts";
import type { Usage } from "../../contract/messages.ts";
import type { RunView } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import type { FleetCallNote, ModelResponse } from "../../contract/trajectory.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import type { CallOutcome, Destination, ModelCall } from "../clients/inference.ts";
import type { Connection } from "../clients/outgoing.ts";
import type { Latencies } from "./latency.ts";

/** What rollouts of one run experienced since the last report. */
export interface Outcomes {
  /** When a rollout last ended whose calls the endpoint answered; null if none did. */
  readonly ok_at: number | null;
  /** Rollouts since then that ended because the endpoint failed, even after retries. */
  readonly streak: number;
  /** Calls of rollouts that ended in the last seconds, and how many got a 429, whether or not a retry succeeded. */
  readonly calls: number;
  readonly limited: number;
  /** The time from which those two are counted. */
  readonly counted_from: number;
  /** The message of the last failure. */
  readonly error: string | null;
  /** How long the answered calls took. For monitoring only: a repeated request may report some calls twice. */
  readonly latencies?: Latencies;
}

/** The endpoint refused a part of a call; the call was then repeated without that part. */
export interface Refusal {
  readonly error: SerializedError;
  readonly status?: number;
  /** Of a reply that could not be used, as the endpoint reported it. */
  readonly usage?: Usage;
}

/** `replica`, `fleet_call`: for a call on a fleet, the replica that had it. `whole`: the reply was no stream. */
export type TurnOutcome<Response = ModelResponse> = { readonly refusals?: readonly Refusal[] } & (
  | {
      readonly kind: "answered";
      readonly response: Response;
      readonly whole?: true;
      /** It came from the project's cache: no call was sent. */
      readonly from_cache?: true;
      readonly fleet_call?: FleetCallNote;
    }
  | { readonly kind: "prompt_too_long" }
  /** The result was no longer needed. */
  | { readonly kind: "aborted"; readonly replica?: string }
  /** There is no endpoint to call, and a retry would not find one either. */
  | { readonly kind: "unusable"; readonly error: SerializedError }
  | {
      readonly kind: "failed";
      readonly error: SerializedError;
      readonly retryable: boolean;
      /** The wait that the endpoint asked for. */
      readonly retry_after_ms: number | null;
      readonly status?: number;
      /** The endpoint has a new key: the next call does not count as a retry. */
      readonly free?: boolean;
      /** Usage of a reply that could not be used, as the endpoint reported it. */
      readonly usage?: Usage;
      /** A reply came that could not be used and did not report its usage. */
      readonly unmetered?: boolean;
      /** The call was sent, and it is unknown whether the endpoint processed it. */
      readonly lost?: boolean;
      /** The endpoint, or a proxy before it, did not answer in time. */
      readonly late?: boolean;
      readonly replica?: string;
    }
);

/** The call was not sent: no replica of its fleet accepts calls now. Try again at `again_at` (epoch milliseconds). */
export interface Held {
  readonly kind: "held";
  readonly again_at: number;
  readonly reason: string;
  /** The longest time in milliseconds until a replica that is not down accepts calls again. */
  readonly update_ms?: number;
}

/** The call was not sent: the environment failed to produce the request. */
export interface Unasked {
  readonly kind: "unasked";
  readonly error: SerializedError;
}

/** A call without its endpoint's address and key. */
export type TurnCall = Omit<ModelCall, "base_url" | "api_key" | "signal">;

/** Facts about a call that only its fleet has. */
export interface CalledBy {
  /** The name of the model in the request. */
  readonly model: string;
  /** Version of the weights, if the run trains on this fleet. */
  readonly version: number | null;
  /** The number of resets of the run before these weights, if `version` is set. */
  readonly generation?: number;
}

/** A call that has a connection and is about to be sent. */
export interface ReachedCall {
  readonly from: Rollout;
  readonly waitMs: number;
  readonly controller: AbortController;
  readonly connection: Connection;
  /**
   * Decides how the prompt is sent, before the request is made. The outcome of the call if that is not possible now;
   * null if it is decided. Absent: there is nothing to decide.
   */
  readonly decide?: (where: Omit<Destination, "idempotency_key">, by?: CalledBy) => Promise<CallOutcome | null>;
  /** Makes the request right before it is sent. */
  readonly call: (by?: CalledBy) => TurnCall;
}

/** Sends a call to where its model is. Throws only for temporary failures of the platform itself. */
export type Reach = (call: ReachedCall) => Promise<TurnOutcome | Held>;

export interface FailedTry {
  readonly rollout_id: string;
  readonly model: string;
  /** It was answered with 429: too many calls at once, which does not indicate an outage. */
  readonly limited: boolean;
}

/** How much a run wants to use: of rollouts at an endpoint, or of another limited resource. */
export interface Need {
  /** Rollouts that have not answered. The run dispatches no more until it has its grant. */
  readonly running: number;
  /** How many it would run at once. If this and `running` are 0, the run gives up its lease. */
  readonly wants: number;
  /** Whether it has rollouts left to dispatch. */
  readonly more: boolean;
  /** How much it usually wants, if that differs from now. If it is above 0, the run keeps its lease. */
  readonly usual?: number;
}

/** A run's request for a lease. */
export interface LeaseAsk extends Need {
  readonly scope: Scope;
  readonly endpoint_id: string;
  readonly run_id: string;
  readonly model: string;
  readonly outcomes: Outcomes;
}

export interface GrantedLease {
  /** Rollouts that may run at once. */
  readonly permits: number;
  /** Calls per minute; null = any number. */
  readonly rate: number | null;
  /** Others want what this run does not need: it gives places back as they become free. */
  readonly shared: boolean;
  /** The run must report outcomes at once, successes too. */
  readonly watched: boolean;
  /** Rollouts in a row that the endpoint is known to have failed. */
  readonly streak: number;
  /** The status reason if the run waits for this lease. The stored name stays `flow`. */
  readonly flow: RunView["status_reason"];
  /** The deployment is draining: no rollout may start. Only organisations say so. Absent: it is not. */
  readonly upgrading?: boolean;
  readonly lease_until: number;
}
