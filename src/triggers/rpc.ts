/**
 * The interface of a trigger's object. Messages may arrive twice, fields are only added, times are epoch milliseconds.
 */
import type { Scope } from "../contract/scope.ts";
import { folderOf } from "../kernel/kit/names.ts";
import type { Refusal } from "../kernel/messages/refusal.ts";
import type { Filling } from "./mapping.ts";
import type { DeliveryState, TriggerConcurrency } from "./wire.ts";

export interface TriggerPlace {
  readonly scope: Scope;
  readonly trigger_id: string;
}

/** The evaluation of a signed delivery before it reaches the object. */
export type Verdict =
  | { readonly kind: "begin"; readonly filling: Filling }
  | { readonly kind: "ignored"; readonly reason: string }
  | { readonly kind: "answered" }
  | { readonly kind: "refused"; readonly error: Refusal };

export interface SignedDelivery {
  /** Ids that identify the delivery; the first is the sender's. */
  readonly ids: readonly [string, ...string[]];
  readonly event: string | null;
  readonly verdict: Verdict;
  readonly concurrency: TriggerConcurrency;
  /** The platform's origin in the request. */
  readonly origin: string;
}

/** The outcome. `error` is set if the delivery was refused. */
export interface DeliveryOutcome {
  readonly run_id: string | null;
  readonly duplicate: boolean;
  readonly state: DeliveryState;
  readonly reason: string | null;
  readonly error: Refusal | null;
}

/** An entry of the log. */
export interface LoggedDelivery {
  readonly serial: number;
  readonly delivery_id: string | null;
  readonly event: string | null;
  readonly state: DeliveryState;
  readonly run_id: string | null;
  readonly error: Refusal | null;
  readonly superseded_by: number | null;
  /** The number of similar refusals that are not in the log. */
  readonly more: number;
  readonly at: number;
}

export interface TriggerRpc {
  /** On disk before its run is started. A repeat returns the same outcome. */
  deliver(of: TriggerPlace, delivery: SignedDelivery): Promise<DeliveryOutcome>;
  /** An unsigned, late or invalid delivery: a sample of these is kept. */
  refused(of: TriggerPlace, error: Refusal): Promise<void>;
  /** Newest first, at most `limit` entries before `before`. */
  log(page: { readonly before: number | null; readonly limit: number }): Promise<LoggedDelivery[]>;
  /** The trigger's settings have changed. `change`: as it was announced, if it was. */
  changed(of: TriggerPlace, change?: string): Promise<void>;
  /**
   * Its schedule is about to be set or changed. If `changed` does not follow with the same `change`, which is unique, the
   * object reads the trigger itself.
   */
  expectChange(of: TriggerPlace, origin: string, change?: string): Promise<void>;
  /** Deletes everything; waiting deliveries start no runs. */
  free(): Promise<void>;
}

export function triggerObject(env: Env, { scope, trigger_id }: TriggerPlace): TriggerRpc {
  const stub: unknown = env.TRIGGER.getByName(`${folderOf(scope)}${trigger_id}`);
  return stub as TriggerRpc;
}
