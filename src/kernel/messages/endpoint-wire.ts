/** What a run asks of its endpoint's object and what it is granted, what of a call is told of, and what came of one. */

import type { SerializedError } from "../../contract/errors.ts";
import type { Usage } from "../../contract/messages.ts";
import type { RunView } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import type { FleetCallNote, ModelResponse } from "../../contract/trajectory.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import type { ModelCall } from "../clients/inference.ts";
import type { Latencies } from "./latency.ts";

/** What rollouts of one run met since it was last told of. */
export interface Outcomes {
  /** When the last rollout ended that the endpoint had answered and not failed; null when none did. */
  readonly ok_at: number | null;
  /** Rollouts since then that ended because the endpoint failed them, retries included. */
  readonly streak: number;
  /** Calls of rollouts that ended in the last seconds, and how many were answered with 429, cured by a retry or not. */
  readonly calls: number;
  readonly limited: number;
  /** Since when those two are counted. */
  readonly counted_from: number;
  /** What the last failure said. */
  readonly error: string | null;
  /** How long the calls took that were answered. For who watches: an ask that is repeated may tell of some twice. */
  readonly latencies?: Latencies;
}

/** How an endpoint refused a part of a call, which was then made again without that part. */
export interface Refusal {
  readonly error: SerializedError;
  readonly status?: number;
}

/** `replica`, `fleet_call`: of a call on a fleet, who had it. */
export type TurnOutcome<Response = ModelResponse> = { readonly refusals?: readonly Refusal[] } & (
  | { readonly kind: "answered"; readonly response: Response; readonly fleet_call?: FleetCallNote }
  | { readonly kind: "prompt_too_long" }
  /** Nobody waited for it any longer. */
  | { readonly kind: "aborted"; readonly replica?: string }
  /** There is no endpoint to call, and no other try would find one. */
  | { readonly kind: "unusable"; readonly error: SerializedError }
  | {
      readonly kind: "failed";
      readonly error: SerializedError;
      readonly retryable: boolean;
      /** What the endpoint asked for. */
      readonly retry_after_ms: number | null;
      readonly status?: number;
      /** The endpoint has another key by now: the next call is none of the tries that are counted. */
      readonly free?: boolean;
      /** What a reply took that could not be used, as its endpoint counted it. */
      readonly usage?: Usage;
      /** A reply came that could not be used, and did not say what it took. */
      readonly unmetered?: boolean;
      /** It left, and nobody knows what its endpoint made of it. */
      readonly lost?: boolean;
      readonly replica?: string;
    }
);

/** No call left: no replica of its fleet takes one now. It may ask again then (epoch milliseconds). */
export interface Held {
  readonly kind: "held";
  readonly again_at: number;
  readonly reason: string;
  /** Milliseconds that it may take until one is back that is not down. */
  readonly update_ms?: number;
}

/** No call left: the environment could not say what to ask with. */
export interface Unasked {
  readonly kind: "unasked";
  readonly error: SerializedError;
}

/** A call without its endpoint's address and key. */
export type TurnCall = Omit<ModelCall, "base_url" | "api_key" | "signal">;

/** What a fleet says of a call. */
export interface CalledBy {
  /** By which name the model is asked. */
  readonly model: string;
  /** Of the weights, where its run trains on this fleet. */
  readonly version: number | null;
  /** Of the run's weights: the resets it has lived through, where `version` is told. */
  readonly generation?: number;
}

/** A call that has a connection and is about to leave. */
export interface ReachedCall {
  readonly from: Rollout;
  readonly waitMs: number;
  readonly controller: AbortController;
  /** Made right before it leaves. */
  readonly call: (by?: CalledBy) => TurnCall;
}

/** How a call gets to where its model is. Throws only what passes and is the platform's own. */
export type Reach = (call: ReachedCall) => Promise<TurnOutcome | Held>;

export interface FailedTry {
  readonly rollout_id: string;
  readonly model: string;
  /** It was answered with 429: too much at once, which is no sign of an outage. */
  readonly limited: boolean;
}

/** What a run is about to ask for: rollouts at an endpoint, or something else of which it may have only so much. */
export interface Need {
  /** Rollouts that have not answered; it dispatches none beyond them until it has its grant. */
  readonly running: number;
  /** How many it would run at once. Wanting none and running none it leaves. */
  readonly wants: number;
  /** Whether it has rollouts left to dispatch. */
  readonly more: boolean;
  /** How many it mostly wants, where that is not what it wants now: with some it stays, whatever it wants. */
  readonly usual?: number;
}

/** What a run says of itself, and asks for. */
export interface PermitAsk extends Need {
  readonly scope: Scope;
  readonly endpoint_id: string;
  readonly run_id: string;
  readonly model: string;
  readonly outcomes: Outcomes;
}

export interface Grant {
  /** Rollouts it may have running. */
  readonly permits: number;
  /** Calls a minute; null = any number. */
  readonly rate: number | null;
  /** Permits it does not need are wanted by others: it gives them back as they fall free. */
  readonly shared: boolean;
  /** What its rollouts meet is to be told at once, good news too. */
  readonly watched: boolean;
  /** Rollouts in a row that the endpoint is known to have failed. */
  readonly streak: number;
  readonly flow: RunView["flow"];
  readonly lease_until: number;
}
