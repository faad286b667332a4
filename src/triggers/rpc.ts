/**
 * What a trigger's object is asked. As in wire.ts: everything may come twice, and arguments and results only ever gain
 * optional fields. Times are epoch milliseconds.
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

/** What a delivery that its sender signed came to before the object hears of it. */
export type Verdict =
  | { readonly kind: "begin"; readonly filling: Filling }
  | { readonly kind: "ignored"; readonly reason: string }
  | { readonly kind: "answered" }
  | { readonly kind: "refused"; readonly error: Refusal };

export interface SignedDelivery {
  /** What it is known by; the first is how its sender names it. */
  readonly ids: readonly [string, ...string[]];
  readonly event: string | null;
  readonly verdict: Verdict;
  readonly concurrency: TriggerConcurrency;
  /** Of the platform, as the sender addressed it. */
  readonly origin: string;
}

/** What became of it. `error` where it was refused. */
export interface DeliveryOutcome {
  readonly run_id: string | null;
  readonly duplicate: boolean;
  readonly state: DeliveryState;
  readonly reason: string | null;
  readonly error: Refusal | null;
}

/** One line of the log. */
export interface LoggedDelivery {
  readonly serial: number;
  readonly delivery_id: string | null;
  readonly event: string | null;
  readonly state: DeliveryState;
  readonly run_id: string | null;
  readonly error: Refusal | null;
  readonly superseded_by: number | null;
  /** Refused like it, and not in the log. */
  readonly more: number;
  readonly at: number;
}

export interface TriggerRpc {
  /** On disk before a run is begun of it. Repeated, it says what became of it. */
  deliver(of: TriggerPlace, delivery: SignedDelivery): Promise<DeliveryOutcome>;
  /** Something came that nobody signed, or too late, or that is no delivery: a sample of these is kept. */
  refused(of: TriggerPlace, error: Refusal): Promise<void>;
  /** Newest first, at most `limit` before `before`. */
  log(page: { readonly before: number | null; readonly limit: number }): Promise<LoggedDelivery[]>;
  /** What it begins, or whether deliveries wait, is not what it was. */
  changed(of: TriggerPlace): Promise<void>;
  /** Nothing is kept of it, and nothing that waits is begun. */
  free(): Promise<void>;
}

export function triggerObject(env: Env, { scope, trigger_id }: TriggerPlace): TriggerRpc {
  const stub: unknown = env.TRIGGER.getByName(`${folderOf(scope)}${trigger_id}`);
  return stub as TriggerRpc;
}
