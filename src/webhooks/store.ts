/**
 * The queue and the log of one endpoint's deliveries, in its object's SQLite.
 *
 * Invariants. Of the pending deliveries of a subject, only the oldest has a due time; the others wait for it. The
 * writes of one call are on disk together or not at all. Nothing is written before the first event. At most
 * LIMITS.webhookBacklog deliveries and LIMITS.webhookBacklogBytes are pending; beyond that, the oldest are dropped.
 */
import { LIMITS } from "../contract/limits.ts";
import { Rows } from "../kernel/kit/rows.ts";
import type { OutboundEvent } from "../kernel/kit/slice-hooks.ts";
import {
  type Delivery,
  type Disabled,
  type Ended,
  NEW_STANDING,
  type Standing,
  type Tried,
  WEBHOOK_SCHEMA,
} from "./deliveries.ts";
import type { ReplayOrder, WebhookOf } from "./rpc.ts";
import { bodyOf, messageId, nextAttemptAt } from "./rules.ts";
import type { DeliveriesQuery, DeliveryState } from "./wire.ts";

const DAY_MS = 24 * 3600_000;
const LOG_MS = 7 * DAY_MS;
const ACCEPTED_MS = DAY_MS;
const MOST_ACCEPTED = 50_000;
/** The most rows looked at in one call: more than most calls add. */
const FORGOTTEN_A_CALL = 200;

export class WebhookStore {
  readonly #storage: DurableObjectStorage;
  readonly #rows: Rows;
  #of: WebhookOf | undefined;
  #standing: Standing | undefined;
  #inTransaction = false;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#rows = new Rows(storage.sql);
  }

  /** Null for an object that never received an event. */
  of(): WebhookOf | null {
    this.#of ??= this.#storage.kv.get<WebhookOf>("of");
    return this.#of ?? null;
  }

  standing(): Standing {
    this.#standing ??= this.#storage.kv.get<Standing>("standing") ?? NEW_STANDING;
    return this.#standing;
  }

  /** Call it when the storage is freed. */
  forget(): void {
    this.#of = undefined;
    this.#standing = undefined;
  }

  /** Within a transaction it is written once, at the end. */
  note(changes: Partial<Standing>): void {
    this.#standing = { ...this.standing(), ...changes };
    if (!this.#inTransaction) this.#storage.kv.put("standing", this.#standing);
  }

  /** Adds all events or none. Returns how many other deliveries were dropped for them. */
  add(of: WebhookOf, events: readonly OutboundEvent[], now: number): number {
    return this.#atOnce(() => {
      if (this.of() === null) this.#create(of);
      let dropped = 0;
      for (const event of events) dropped += this.#addOne(of, event, now);
      this.prune(now);
      return dropped;
    });
  }

  /** Deliveries that may be sent now, at most `limit`, and never two of one subject. */
  due(now: number, limit: number): Delivery[] {
    const query = "select * from deliveries where next_at <= ? order by next_at, seq limit ?";
    return this.#rows.all<Delivery>(query, now, limit);
  }

  nextAt(): number | null {
    const query = "select min(next_at) as at from deliveries where next_at is not null";
    return this.#rows.one<{ at: number | null }>(query)?.at ?? null;
  }

  /** When the oldest log entry expires; null if the log is empty. */
  forgetAt(): number | null {
    const query = "select min(ended_at) as at from deliveries where ended_at is not null";
    const at = this.#rows.one<{ at: number | null }>(query)?.at ?? null;
    return at === null ? null : at + LOG_MS + 1;
  }

  /** Counts an attempt that is about to be made. `again`: when the next is due if this one's outcome is lost. */
  begin({ seq, attempts, first_at }: Delivery, now: number, again: number): void {
    const times = { first_at: attempts === 0 ? now : first_at, attempted_at: now, next_at: again };
    this.#rows.set("deliveries", { seq }, { attempts: attempts + 1, ...times });
  }

  delivered(id: string, tried: Tried, now: number): void {
    this.#atOnce(() => {
      this.note({ failures_in_a_row: 0, resting_until: null, delivered_at: now });
      const row = this.#pending(id);
      if (row !== null) this.#end(row, "delivered", { ...tried }, now);
      this.prune(now);
    });
  }

  /** Records a failed attempt. Returns false if it was the last and the endpoint is at fault (see `giveUp`). */
  failed(id: string, tried: Tried, now: number, rest_ms: number | null): boolean {
    return this.#atOnce(() => {
      const resting_until = rest_ms === null ? this.standing().resting_until : now + rest_ms;
      this.note({ failures_in_a_row: this.standing().failures_in_a_row + 1, resting_until });
      const row = this.#pending(id);
      if (row === null) return true;
      const at = nextAttemptAt(id, row.attempts, now);
      const next_at = at === null ? now : Math.max(at, resting_until ?? 0);
      this.#rows.set("deliveries", { seq: row.seq }, { ...tried, next_at });
      return at !== null || this.#giveUp(row, now);
    });
  }

  /**
   * Gives up a delivery without attempts left. Returns false if nothing was delivered since its first attempt: then the
   * endpoint is at fault, and the delivery stays pending.
   */
  giveUp(row: Delivery, now: number): boolean {
    return this.#atOnce(() => this.#giveUp(row, now));
  }

  /** Stops all sending: pending deliveries are given up and kept for a replay. */
  disable({ at, reason, written = true }: Disabled, mails: number): void {
    this.#atOnce(() => {
      const { pending, pending_bytes, failed, failed_bytes } = this.standing();
      this.#rows.all(
        `update deliveries set state = 'failed', next_at = null, ended_at = ?, error = coalesce(error, ?)
          where state = 'pending'`,
        at,
        `the endpoint was disabled: ${reason}`,
      );
      const given = { failed: failed + pending, failed_bytes: failed_bytes + pending_bytes };
      this.note({ ...{ pending: 0, pending_bytes: 0 }, ...given, disabled: { at, reason, written, mails } });
      this.#dropFailed();
    });
  }

  enable(): void {
    this.note({ disabled: null, failures_in_a_row: 0, resting_until: null });
  }

  /** Null: it is not in the log. */
  replayOne(id: string, now: number): Delivery | null {
    return this.#atOnce(() => {
      const row = this.find(id);
      if (row !== null && row.state !== "pending" && !this.#isFull(row.bytes)) this.#renew([row], now);
      return this.find(id);
    });
  }

  /** The oldest first, as many as the queue has space for. */
  replay({ after, before, states }: ReplayOrder, now: number): number {
    if (this.of() === null) return 0;
    return this.#atOnce(() => {
      const query = `select seq, subject, bytes, state from deliveries where ended_at >= ? and ended_at < ?
        and state in (select value from json_each(?)) order by seq limit ?`;
      const { pending, pending_bytes } = this.standing();
      const room = Math.max(0, LIMITS.webhookBacklog - pending);
      let bytes = pending_bytes;
      const rows = this.#rows.all<Ended>(query, after, before, JSON.stringify(states), room).filter((row) => {
        bytes += row.bytes;
        return bytes <= LIMITS.webhookBacklogBytes;
      });
      if (rows.length > 0) this.#renew(rows, now);
      return rows.length;
    });
  }

  find(id: string): Delivery | null {
    if (this.of() === null) return null;
    return this.#rows.one<Delivery>("select * from deliveries where id = ?", id);
  }

  /** Newest first, one more than the limit. Null: `after` is not in the log. */
  page({ state, after, limit }: DeliveriesQuery): Delivery[] | null {
    if (this.of() === null) return after === undefined ? [] : null;
    const last = after === undefined ? undefined : this.find(after);
    if (last === null) return null;
    const below = last?.seq ?? Number.MAX_SAFE_INTEGER;
    const states = state === undefined ? "" : "state = ? and";
    const query = `select * from deliveries where ${states} seq < ? order by seq desc limit ?`;
    return this.#rows.all<Delivery>(query, ...(state === undefined ? [] : [state]), below, limit + 1);
  }

  #create(of: WebhookOf): void {
    for (const statement of WEBHOOK_SCHEMA) this.#rows.all(statement);
    this.#storage.kv.put("of", of);
    this.#of = of;
  }

  #addOne({ webhook_id }: WebhookOf, event: OutboundEvent, now: number): number {
    const id = messageId(event, webhook_id);
    // `told` forgets ids after a while, but a delivery that is pending or in the log is still known here.
    const known = "select 1 from told where id = ?1 union all select 1 from deliveries where id = ?1";
    if (this.#rows.one(known, id) !== null) return 0;
    this.#rows.insert("told", { id, at: now });
    const body = bodyOf(event);
    const bytes = new TextEncoder().encode(body).byteLength;
    const dropped = this.#makeRoom(bytes, now);
    const { subject, type } = event;
    const next_at = this.#head(subject) === null ? now : null;
    const added = { id, event: event.id, type, subject, body, bytes, state: "pending", next_at, created_at: now };
    this.#rows.insert("deliveries", added);
    this.#count(1, bytes);
    return dropped;
  }

  #makeRoom(bytes: number, now: number): number {
    let dropped = 0;
    while (this.#isFull(bytes)) {
      const oldest = this.#rows.one<Delivery>("select * from deliveries where state = 'pending' order by seq limit 1");
      if (oldest === null) break;
      this.#end(oldest, "dropped", { error: "dropped: too many deliveries were pending" }, now);
      dropped += 1;
    }
    if (dropped > 0) this.note({ dropped: this.standing().dropped + dropped });
    return dropped;
  }

  #isFull(bytes: number): boolean {
    const { pending, pending_bytes } = this.standing();
    return pending >= LIMITS.webhookBacklog || pending_bytes + bytes > LIMITS.webhookBacklogBytes;
  }

  #pending(id: string): Delivery | null {
    const row = this.find(id);
    return row?.state === "pending" ? row : null;
  }

  #giveUp({ seq, subject, bytes, first_at }: Delivery, now: number): boolean {
    const { delivered_at } = this.standing();
    if (delivered_at === null || delivered_at < (first_at ?? now)) return false;
    this.#rows.set("deliveries", { seq }, { state: "failed", next_at: null, ended_at: now });
    this.#count(-1, -bytes);
    this.#countFailed(1, bytes);
    this.#dropFailed();
    this.#wakeNext(subject, now);
    return true;
  }

  #end({ seq, subject, bytes }: Delivery, state: DeliveryState, columns: Partial<Tried>, now: number): void {
    this.#rows.set("deliveries", { seq }, { ...columns, state, next_at: null, ended_at: now });
    this.#count(-1, -bytes);
    this.note({ ended: this.standing().ended + 1 });
    this.#wakeNext(subject, now);
  }

  /** Makes ended deliveries pending again, at their old positions in the order. */
  #renew(rows: readonly Ended[], now: number): void {
    const again = JSON.stringify(rows.map(({ seq }) => seq));
    const subjects = JSON.stringify([...new Set(rows.map(({ subject }) => subject))]);
    this.#rows.all(
      `update deliveries set state = 'pending', attempts = 0, next_at = null, ended_at = null
        where seq in (select value from json_each(?))`,
      again,
    );
    const ofThem = "state = 'pending' and subject in (select value from json_each(?))";
    this.#rows.all(`update deliveries set next_at = null where next_at is not null and ${ofThem}`, subjects);
    this.#rows.all(
      `update deliveries set next_at = ?
        where seq in (select min(seq) from deliveries where ${ofThem} group by subject)`,
      now,
      subjects,
    );
    const bytesOf = (some: readonly Ended[]) => some.reduce((sum, { bytes }) => sum + bytes, 0);
    const failed = rows.filter(({ state }) => state === "failed");
    this.#count(rows.length, bytesOf(rows));
    this.#countFailed(-failed.length, -bytesOf(failed));
    this.note({ ended: this.standing().ended - (rows.length - failed.length) });
  }

  #wakeNext(subject: string, now: number): void {
    const head = this.#head(subject);
    if (head !== null && head.next_at === null) this.#rows.set("deliveries", { seq: head.seq }, { next_at: now });
  }

  #head(subject: string): Pick<Delivery, "seq" | "next_at"> | null {
    const query = `select seq, next_at from deliveries indexed by deliveries_waiting
      where subject = ? and state = 'pending' order by seq limit 1`;
    return this.#rows.one<{ seq: number; next_at: number | null }>(query, subject);
  }

  #count(deliveries: number, bytes: number): void {
    const { pending, pending_bytes } = this.standing();
    this.note({ pending: pending + deliveries, pending_bytes: pending_bytes + bytes });
  }

  #countFailed(deliveries: number, bytes: number): void {
    const { failed, failed_bytes } = this.standing();
    this.note({ failed: failed + deliveries, failed_bytes: failed_bytes + bytes });
  }

  /** Deletes the oldest failed deliveries beyond the limits of the queue. */
  #dropFailed(): void {
    for (;;) {
      const { failed, failed_bytes, dropped } = this.standing();
      if (failed <= LIMITS.webhookBacklog && failed_bytes <= LIMITS.webhookBacklogBytes) return;
      const [gone] = this.#rows.all<{ bytes: number }>(
        `delete from deliveries where seq = (select min(seq) from deliveries where state = 'failed') returning bytes`,
      );
      if (gone === undefined) return;
      this.#countFailed(-1, -gone.bytes);
      this.note({ dropped: dropped + 1 });
    }
  }

  /** Deletes log entries that are too old or too many, and old ids of events. */
  prune(now: number): void {
    const over = Math.max(0, this.standing().ended - LIMITS.webhookLog);
    const gone = [
      ...this.#rows.all<Ended>(
        "delete from deliveries where ended_at is not null and ended_at < ? returning seq, subject, bytes, state",
        now - LOG_MS,
      ),
      ...this.#rows.all<Ended>(
        `delete from deliveries where seq in (select seq from deliveries
          where ended_at is not null and state in ('delivered', 'dropped') order by ended_at, seq limit ?)
          returning seq, subject, bytes, state`,
        over,
      ),
    ];
    for (const { state, bytes } of gone) {
      if (state === "failed") this.#countFailed(-1, -bytes);
      else this.note({ ended: this.standing().ended - 1 });
    }
    this.#rows.all("delete from told where n <= (select max(n) from told) - ?", MOST_ACCEPTED);
    const oldest = "select n, at from told order by n limit ?";
    this.#rows.all(
      `delete from told where n in (select n from (${oldest}) where at < ?)`,
      FORGOTTEN_A_CALL,
      now - ACCEPTED_MS,
    );
  }

  #atOnce<T>(change: () => T): T {
    const before = this.#standing;
    this.#inTransaction = true;
    try {
      return this.#storage.transactionSync(() => {
        const result = change();
        if (this.#standing !== before) this.#storage.kv.put("standing", this.standing());
        return result;
      });
    } catch (thrown) {
      this.#standing = before;
      this.#of = undefined;
      throw thrown;
    } finally {
      this.#inTransaction = false;
    }
  }
}
