/** The state of an endpoint's deliveries: the rows, the totals, and their wire form. Times are epoch milliseconds. */
import type { DeliveryState, WebhookBacklog, WebhookDelivery } from "./wire.ts";

/** `told`: ids of events that were accepted, so that a late repeat of an event changes nothing. */
export const WEBHOOK_SCHEMA = [
  `create table deliveries (
    seq integer primary key, id text not null unique, event text not null, type text not null, subject text not null,
    body text not null, bytes integer not null, state text not null, attempts integer not null default 0,
    next_at integer, status integer, answer text, error text, latency_ms integer,
    created_at integer not null, first_at integer, attempted_at integer, ended_at integer)`,
  "create index deliveries_due on deliveries (next_at) where next_at is not null",
  "create index deliveries_waiting on deliveries (subject, seq) where state = 'pending'",
  "create index deliveries_pending on deliveries (seq) where state = 'pending'",
  "create index deliveries_ended on deliveries (ended_at) where ended_at is not null",
  "create index deliveries_by_state on deliveries (state, seq)",
  "create table told (n integer primary key, id text not null unique, at integer not null)",
];

export type Delivery = {
  readonly seq: number;
  readonly id: string;
  readonly event: string;
  readonly type: string;
  readonly subject: string;
  readonly body: string;
  readonly bytes: number;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly next_at: number | null;
  readonly status: number | null;
  readonly answer: string | null;
  readonly error: string | null;
  readonly latency_ms: number | null;
  readonly created_at: number;
  /** When the first attempt was made; `attempted_at`: the last one. */
  readonly first_at: number | null;
  readonly attempted_at: number | null;
  readonly ended_at: number | null;
};

export type Ended = Pick<Delivery, "seq" | "subject" | "bytes" | "state">;

/** The result of the last attempt. */
export type Tried = Pick<Delivery, "status" | "answer" | "error" | "latency_ms">;

/** The endpoint's totals. */
export interface Standing {
  readonly pending: number;
  readonly pending_bytes: number;
  readonly failed: number;
  readonly failed_bytes: number;
  readonly dropped: number;
  /** Deliveries in the log that were delivered or dropped. */
  readonly ended: number;
  readonly failures_in_a_row: number;
  /** When a delivery last succeeded. */
  readonly delivered_at: number | null;
  /** Nothing is sent before this time. */
  readonly resting_until: number | null;
  /** Since when its secret cannot be decrypted. */
  readonly locked_since?: number | null;
  /**
   * Set while the endpoint is disabled. `written`: the database has it too, and from then on the database is
   * authoritative. `mails`: remaining attempts to e-mail the owners.
   */
  readonly disabled: (Disabled & { readonly mails: number }) | null;
}

/** `written`: also stored in the database. */
export interface Disabled {
  readonly at: number;
  readonly reason: string;
  readonly written?: boolean;
}

export const NEW_STANDING: Standing = {
  ...{ pending: 0, pending_bytes: 0, failed: 0, failed_bytes: 0, dropped: 0, ended: 0 },
  ...{ failures_in_a_row: 0, delivered_at: null, resting_until: null, disabled: null },
};

export function backlogOf(standing: Standing): WebhookBacklog {
  const { pending, pending_bytes, failed, dropped, failures_in_a_row, resting_until } = standing;
  return { pending, pending_bytes, failed, dropped, failures_in_a_row, resting_until: secondsOf(resting_until) };
}

export function deliveryViewOf(row: Delivery): WebhookDelivery {
  const { id, event, type, subject, state, attempts, status, answer, error, latency_ms } = row;
  return {
    ...{ object: "webhook_delivery", id, event, type, subject, state, attempts, status, answer, error, latency_ms },
    next_attempt_at: secondsOf(row.next_at),
    created_at: Math.floor(row.created_at / 1000),
    attempted_at: secondsOf(row.attempted_at),
  };
}

function secondsOf(at: number | null): number | null {
  return at === null ? null : Math.floor(at / 1000);
}
