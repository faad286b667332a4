/**
 * What is to be delivered to one address, on its object's own SQLite, and what became of it.
 *
 * Invariants. Of the pending deliveries of a subject only the oldest has a time at which it is due; the others wait behind
 * it. What is written by one call is on disk together or not at all. Nothing is written before the first event. At most
 * LIMITS.webhookBacklog deliveries and LIMITS.webhookBacklogBytes wait: what goes beyond is dropped, the oldest first, and counted.
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
const TOLD_MS = DAY_MS;
const MOST_TOLD = 50_000;
/** Looked at in one call: more than come with most. */
const TOLD_A_CALL = 200;

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

  /** Null for an object that was never told anything. */
  of(): WebhookOf | null {
    this.#of ??= this.#storage.kv.get<WebhookOf>("of");
    return this.#of ?? null;
  }

  standing(): Standing {
    this.#standing ??= this.#storage.kv.get<Standing>("standing") ?? NEW_STANDING;
    return this.#standing;
  }

  /** To be called when the storage is freed. */
  forget(): void {
    this.#of = undefined;
    this.#standing = undefined;
  }

  /** Inside a transaction it is written once, at its end. */
  note(changes: Partial<Standing>): void {
    this.#standing = { ...this.standing(), ...changes };
    if (!this.#inTransaction) this.#storage.kv.put("standing", this.#standing);
  }

  /** All of them or none. How many others had to go for them. */
  add(of: WebhookOf, events: readonly OutboundEvent[], now: number): number {
    return this.#atOnce(() => {
      if (this.of() === null) this.#create(of);
      let dropped = 0;
      for (const event of events) dropped += this.#addOne(of, event, now);
      this.prune(now);
      return dropped;
    });
  }

  /** Those that may be sent now, at most `limit`: never two of one subject. */
  due(now: number, limit: number): Delivery[] {
    const query = "select * from deliveries where next_at <= ? order by next_at, seq limit ?";
    return this.#rows.all<Delivery>(query, now, limit);
  }

  nextAt(): number | null {
    const query = "select min(next_at) as at from deliveries where next_at is not null";
    return this.#rows.one<{ at: number | null }>(query)?.at ?? null;
  }

  /** When the log has something that is too old; null: it is empty. */
  forgetAt(): number | null {
    const query = "select min(ended_at) as at from deliveries where ended_at is not null";
    const at = this.#rows.one<{ at: number | null }>(query)?.at ?? null;
    return at === null ? null : at + LOG_MS + 1;
  }

  /** An attempt that is about to be made. Should its end never be heard of, `again` is when the next one is due. */
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

  /** An attempt that came to nothing. False: it was the last, and the address is to blame, as `giveUp` says. */
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

  /** One whose attempts are spent. False: nothing was delivered since its first, and the address is to blame. */
  giveUp(row: Delivery, now: number): boolean {
    return this.#atOnce(() => this.#giveUp(row, now));
  }

  /** Nothing is sent any more: what waits is given up, and kept for a replay. */
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

  /** The oldest first, as many as have room. */
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

  /** Newest first, one more than the page has room for. Null: there is none that it could come after. */
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
    // One that waited for long, or stands in the log, is there still when `told` has forgotten it.
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

  /** What came to an end waits again, at its old places in the order. */
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

  /** As many wait for a replay as may wait to be delivered. */
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

  /** Ended ones that are too old, or too many; and what was told long ago. */
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
    this.#rows.all("delete from told where n <= (select max(n) from told) - ?", MOST_TOLD);
    const oldest = "select n, at from told order by n limit ?";
    this.#rows.all(`delete from told where n in (select n from (${oldest}) where at < ?)`, TOLD_A_CALL, now - TOLD_MS);
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
