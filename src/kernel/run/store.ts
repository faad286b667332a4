/**
 * A run's own SQLite: reads and single-row writes. Writes that belong together are in accounting.ts.
 * Nothing is written before `create`: an object that was never created answers null and stays empty.
 */
import type { CancelReason } from "../../contract/errors.ts";
import type { EventName } from "../../contract/event-names.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunReport } from "../../contract/report.ts";
import type { RolloutStatus } from "../../contract/run.ts";
import { QuarantineStore } from "../environment/quarantine.ts";
import { migrate } from "../kit/migrate.ts";
import { Rows } from "../kit/rows.ts";
import type { Ending, RolloutEntry, RolloutLeft, SegmentEntry, StoredEvent } from "../messages/run-records.ts";
import type { GroupSamples } from "../messages/training-wire.ts";
import type { RolloutSlot, RunSpec } from "../messages/wire.ts";
import { Announcements } from "./announcements.ts";
import { EndedRows } from "./ended-rows.ts";
import { JudgingStore } from "./judging-store.ts";
import { LostReservations } from "./lost-reservations.ts";
import { NeedyRollouts } from "./needy-rollouts.ts";
import { REPORT_COLUMNS, REPORT_QUERY, type ReportRow } from "./report-sums.ts";
import { RetryStore } from "./retry-store.ts";
import { RowsInFlight } from "./rows-in-flight.ts";
import {
  JUDGED_COLUMNS,
  NEW_HEAD,
  NEW_ROLLOUT,
  PAGE_COLUMNS,
  RUN_MIGRATIONS,
  RUN_SCHEMA,
  type RunHead,
} from "./schema.ts";
import { Shards } from "./shards.ts";
import { newTraining } from "./training-state.ts";
import { TrainingStore } from "./training-store.ts";
import { Untold } from "./untold.ts";

/** What judging and training add to the accounting's transactions. They register here; accounting imports neither. */
export interface AccountingHooks {
  /** A rollout ends: returns further columns to write. `row`: the row with all values known so far. */
  readonly onEnded: (store: RunStore, row: RolloutEntry, ending: Ending) => Partial<RolloutEntry>;
  /** Members of the group have ended, maybe all of them. `made`: the training samples of the whole group, if any. */
  readonly onGroupEnded: (store: RunStore, spec: RunSpec, group: number, made: GroupSamples | null) => void;
}

/** `key`: what the report was computed from. */
interface StoredReport {
  readonly key: string;
  readonly report: RunReport;
}

type GroupReward = { seq: number; id: string; status: RolloutStatus; reward: number | null };

export class RunStore {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  readonly #rows: Rows;
  readonly judging: JudgingStore;
  readonly retries: RetryStore;
  readonly needy: NeedyRollouts;
  readonly lostReservations: LostReservations;
  readonly ended: EndedRows;
  readonly announcements: Announcements;
  readonly training: TrainingStore;
  readonly quarantine: QuarantineStore;
  readonly shards = new Shards();
  readonly hooks: AccountingHooks;
  #spec: RunSpec | undefined;
  #head: RunHead | undefined;
  #inTransaction = false;
  /** Updated at every write to `rollouts`: only this store writes there. */
  readonly #inFlight = new RowsInFlight();
  readonly #untold = new Untold({ all: () => this.#allUntold(), bySeq: (seq) => this.bySeq(seq) });
  /** The last rollout's number; null until it is read. */
  #seq: number | null = null;

  constructor(storage: DurableObjectStorage, hooks: AccountingHooks) {
    this.hooks = hooks;
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#rows = new Rows(storage.sql);
    this.judging = new JudgingStore(storage.sql);
    this.retries = new RetryStore(storage.sql);
    this.needy = new NeedyRollouts(storage.sql);
    this.lostReservations = new LostReservations(storage.sql);
    this.ended = new EndedRows(storage.sql);
    this.announcements = new Announcements(storage.sql);
    this.training = new TrainingStore(storage.sql);
    this.quarantine = new QuarantineStore(storage.sql);
  }

  /** Null for an object that was never created. */
  spec(): RunSpec | null {
    if (this.#spec !== undefined) return this.#spec;
    const spec = this.#storage.kv.get<RunSpec>("spec");
    if (spec === undefined) return null;
    migrate(this.#storage, RUN_MIGRATIONS);
    this.#spec = spec;
    return spec;
  }

  create(spec: RunSpec): void {
    for (const statement of RUN_SCHEMA) this.#sql.exec(statement);
    migrate(this.#storage, RUN_MIGRATIONS);
    this.#storage.kv.put("spec", spec);
    this.#spec = spec;
    this.saveHead(spec.training === undefined ? NEW_HEAD : { ...NEW_HEAD, training: newTraining(spec.training) });
  }

  head(): RunHead {
    // A head stored before a member was added gets that member's initial value.
    this.#head ??= this.#storedHead();
    return this.#head;
  }

  #storedHead(): RunHead {
    const head = { ...NEW_HEAD, ...this.#storage.kv.get<RunHead>("head") };
    return { ...head, cap: { ...NEW_HEAD.cap, ...head.cap } };
  }

  /** Must be called when the storage is freed. */
  forget(): void {
    this.#spec = undefined;
    this.#head = undefined;
    this.#seq = null;
    this.#inFlight.forget();
    this.#untold.forget();
    this.announcements.forget();
    this.lostReservations.forget();
    this.shards.forget();
  }

  /** Inside a transaction the head is written once, at its end. */
  saveHead(head: RunHead): void {
    this.#head = head;
    if (!this.#inTransaction) this.#storage.kv.put("head", head);
  }

  /** Commits all writes of `change` or none. A nested call is part of the outer transaction. */
  transaction<T>(change: () => T): T {
    if (this.#inTransaction) return change();
    const before = this.head();
    this.#inTransaction = true;
    try {
      return this.#storage.transactionSync(() => {
        const result = change();
        if (this.#head !== before) this.#storage.kv.put("head", this.#head);
        return result;
      });
    } catch (thrown) {
      this.#head = before;
      this.#inFlight.forget();
      this.#untold.forget();
      this.announcements.forget();
      this.lostReservations.forget();
      this.#seq = null;
      this.shards.forget();
      throw thrown;
    } finally {
      this.#inTransaction = false;
    }
  }

  /** `carries`: the ended attempt whose trajectory it takes over. `host`: the number of its object, or null. */
  addRollout(
    { group, slot, attempt }: RolloutSlot,
    {
      id,
      at,
      askAt,
      ...how
    }: Pick<RolloutEntry, "id" | "carries" | "host" | "ceiling"> & { at: number; askAt: number },
  ): void {
    // `seq` is counted and the row is built here, as the table would do it: reading an inserted row back costs more.
    const seq = (this.#seq ?? this.lastSeq()) + 1;
    const place = { group_index: group, slot, attempt };
    const columns = { seq, ...place, id, status: "running" as const, started_at: at, ask_at: askAt, ...how };
    this.#rows.insert("rollouts", columns);
    this.#seq = seq;
    this.#inFlight.remember({ ...NEW_ROLLOUT, ...columns });
    this.#untold.forget();
  }

  rollout(place: RolloutSlot): RolloutEntry | null {
    const { group, slot, attempt } = place;
    const known = this.#inFlight.inSlot(place);
    if (known !== undefined) return known;
    const query = "select * from rollouts where group_index = ? and slot = ? and attempt = ?";
    return this.#inFlight.remember(this.#rows.one<RolloutEntry>(query, group, slot, attempt));
  }

  /** The latest attempt in the slot that has ended. */
  latestDone({ group, slot }: Omit<RolloutSlot, "attempt">): RolloutEntry | null {
    return this.#rows.one<RolloutEntry>(
      `select * from rollouts where group_index = ? and slot = ? and status = 'done'
        order by attempt desc limit 1`,
      group,
      slot,
    );
  }

  setRollout(seq: number, columns: Partial<RolloutEntry>): void {
    this.#rows.set("rollouts", { seq }, columns);
    this.#inFlight.change(seq, columns);
    if (columns.told === 0 || columns.status === "running") this.#untold.forget();
  }

  /** Marks the running rollouts of the group to be stopped. */
  cancelGroup(group: number, reason: CancelReason): void {
    this.#sql.exec(
      "update rollouts set cancel = ?, told = 0 where group_index = ? and status = 'running' and cancel is null",
      reason,
      group,
    );
    this.#inFlight.forget();
    this.#untold.forget();
  }

  /** Marks the running rollouts that wait for money to be stopped. */
  cancelWaiting(reason: CancelReason): void {
    this.#sql.exec(
      `update rollouts indexed by rollouts_that_wait set cancel = ?, told = 0
        where status = 'running' and needs > 0 and cancel is null`,
      reason,
    );
    this.#inFlight.forget();
    this.#untold.forget();
  }

  group(group: number): RolloutEntry[] {
    return this.#rows.all<RolloutEntry>(
      "select * from rollouts where group_index = ? and superseded_by is null order by slot",
      group,
    );
  }

  /** The rewards that a group's advantages are computed from: those of the attempts that count. */
  groupRewards(group: number): GroupReward[] {
    return this.#rows.all(
      `select seq, id, status, reward from rollouts
        where group_index = ? and superseded_by is null order by slot`,
      group,
    );
  }

  /** The groups with rollouts that wait for scores. */
  scoringGroups(): number[] {
    const query = "select distinct group_index from rollouts where status = 'scoring'";
    return this.#rows.all<{ group_index: number }>(query).map(({ group_index }) => group_index);
  }

  bySeq(seq: number): RolloutEntry | null {
    const known = this.#inFlight.bySeq(seq);
    if (known !== undefined) return known;
    return this.#inFlight.remember(this.#rows.one<RolloutEntry>("select * from rollouts where seq = ?", seq));
  }

  /** Rollouts that are not done and whose `ask_at` has passed. */
  silent(now: number, limit: number): RolloutEntry[] {
    return this.#rows.all<RolloutEntry>(
      "select * from rollouts where status != 'done' and ask_at <= ? order by ask_at limit ?",
      now,
      limit,
    );
  }

  nextAskAt(): number | null {
    const rollouts = this.#rows.one<{ at: number | null }>(
      "select min(ask_at) as at from rollouts where status != 'done'",
    );
    const segments = this.#rows.one<{ at: number | null }>("select min(ask_at) as at from segments where key is null");
    const due = [rollouts?.at, segments?.at].filter((at) => at !== null && at !== undefined);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** After a restart everything in flight is asked once, whenever it was due. */
  askAll(now: number): void {
    // An `ask_at` that has passed stays: that silence counts as a miss, a restart does not.
    this.#sql.exec("update rollouts set ask_at = 0 where status != 'done' and ask_at > ?", now);
    this.#inFlight.forget();
    this.#sql.exec("update segments set ask_at = 0 where key is null");
    this.judging.askAll(now);
  }

  /** Running rollouts to be notified to stop: `all` of them, or those that were cancelled one by one. */
  unnotified(limit: number, all: boolean): RolloutEntry[] {
    if (all) return this.#untold.first(limit);
    return this.#rows.all<RolloutEntry>(
      "select * from rollouts where status = 'running' and told = 0 and cancel is not null order by seq limit ?",
      limit,
    );
  }

  #allUntold(): number[] {
    // By the index of rows in flight. With `order by seq`, SQLite would read the whole table.
    const query = "select seq from rollouts where status != 'done' and status = 'running' and told = 0 order by +seq";
    return this.#rows.all<{ seq: number }>(query).map(({ seq }) => seq);
  }

  /** Finished rollouts in the order of their ends, after `finishSeq`. `judged`: with the calls of their judges. */
  finished(finishSeq: number, limit: number, outcome: string | null, judged = false): RolloutEntry[] {
    return this.#rows.all<RolloutEntry>(
      `select ${judged ? JUDGED_COLUMNS : PAGE_COLUMNS} from rollouts where finish_seq > ? and (? is null or outcome = ?)
        order by finish_seq limit ?`,
      finishSeq,
      outcome,
      outcome,
      limit,
    );
  }

  /** The number of slots whose counting attempt is scored. */
  scoredSlots(): number {
    const scored = "outcome = 'scored' and superseded_by is null";
    return this.#rows.one<{ n: number }>(`select count(*) as n from rollouts where ${scored}`)?.n ?? 0;
  }

  /** The rows of finished rollouts after this one, from which a report is computed, by group: at most `limit`. Streamed. */
  reportRows(after: RolloutSlot, limit: number): Iterable<ReportRow> {
    return this.#sql.exec<ReportRow>(REPORT_QUERY, after.group, after.slot, after.attempt, limit);
  }

  /** The report that was stored with this key; null if there is none. */
  report(key: string): RunReport | null {
    const stored = this.#storage.kv.get<StoredReport>("report");
    return stored?.key === key ? stored.report : null;
  }

  saveReport(stored: StoredReport): void {
    this.#storage.kv.put("report", stored);
  }

  /** The same rows for rollouts that ended after `finishSeq`, in the order of their ends. */
  reportRowsAfter(finishSeq: number): Iterable<ReportRow> {
    return this.#sql.exec<ReportRow>(
      `select ${REPORT_COLUMNS} from rollouts where finish_seq > ? order by finish_seq`,
      finishSeq,
    );
  }

  lastSeq(): number {
    return this.#rows.one<{ seq: number | null }>("select max(seq) as seq from rollouts")?.seq ?? 0;
  }

  /** Hash of the request that used the key before; null for a new key. */
  request(operation: string, key: string): string | null {
    return (
      this.#rows.one<{ hash: string }>("select hash from requests where operation = ? and key = ?", operation, key)
        ?.hash ?? null
    );
  }

  rememberRequest(operation: string, key: string, hash: string): void {
    this.#rows.insert("requests", { operation, key, hash });
  }

  addTrajectory(seq: number, text: string): void {
    this.#rows.insert("trajectories", { seq, text });
  }

  /** The texts of those of these rollouts that are stored here and not in R2, by `seq`. */
  trajectories(seqs: readonly number[]): ReadonlyMap<number, string> {
    const query = "select seq, text from trajectories where seq in (select value from json_each(?))";
    const rows = this.#rows.all<{ seq: number; text: string }>(query, JSON.stringify(seqs));
    return new Map(rows.map(({ seq, text }) => [seq, text]));
  }

  /** Null if it is in R2: because it is large, or compacted. */
  trajectory(seq: number): string | null {
    return this.#rows.one<{ text: string }>("select text from trajectories where seq = ?", seq)?.text ?? null;
  }

  /** The trajectories of a segment's rollouts, in the order of their ends. */
  leftIn({ first_seq, last_seq }: SegmentEntry): RolloutLeft[] {
    return this.#rows.all<RolloutLeft>(
      `select id, digest, text from rollouts left join trajectories using (seq)
        where finish_seq between ? and ? order by finish_seq`,
      first_seq,
      last_seq,
    );
  }

  /** Called once the segment's trajectories are stored in R2. */
  dropTrajectories({ first_seq, last_seq }: SegmentEntry): void {
    this.#sql.exec(
      "delete from trajectories where seq in (select seq from rollouts where finish_seq between ? and ?)",
      first_seq,
      last_seq,
    );
  }

  addSegment(firstSeq: number, lastSeq: number, askAt: number): number {
    return (
      this.#rows.one<{ segment: number }>(
        "insert into segments (first_seq, last_seq, ask_at) values (?, ?, ?) returning segment",
        firstSeq,
        lastSeq,
        askAt,
      )?.segment ?? 0
    );
  }

  segment(segment: number): SegmentEntry | null {
    return this.#rows.one<SegmentEntry>("select * from segments where segment = ?", segment);
  }

  /** Segments that cover ends after `finishSeq`, in order. */
  segmentsAfter(finishSeq: number, limit: number): SegmentEntry[] {
    return this.#rows.all<SegmentEntry>(
      "select * from segments where last_seq > ? order by segment limit ?",
      finishSeq,
      limit,
    );
  }

  silentSegments(now: number, limit: number): SegmentEntry[] {
    return this.#rows.all<SegmentEntry>(
      "select * from segments where key is null and ask_at <= ? order by segment limit ?",
      now,
      limit,
    );
  }

  setSegment(segment: number, columns: Partial<SegmentEntry>): void {
    this.#rows.set("segments", { segment }, columns);
  }

  /** Keeps the newest `LIMITS.eventsPerRun`; a reader that needs older events gets a snapshot. */
  addEvent(id: number, event: EventName, data: object): void {
    this.#rows.insert("events", { id, event, data: JSON.stringify(data) });
    if (id <= LIMITS.eventsPerRun) return;
    this.#sql.exec("delete from events where id <= ?", id - LIMITS.eventsPerRun);
  }

  /** Removes the event of the run's end, since events will follow: a reader from the start must read on. */
  dropEnd(): void {
    this.#sql.exec("delete from events where event in ('run.completed', 'run.failed', 'run.cancelled')");
  }

  events(after: number, limit: number): StoredEvent[] {
    return this.#rows
      .all<{ id: number; event: EventName; data: string }>(
        "select * from events where id > ? order by id limit ?",
        after,
        limit,
      )
      .map(({ id, event, data }) => ({ id, event, data: JSON.parse(data) as object }));
  }

  addDeadLetter(queue: string, body: string, at: number): void {
    this.#rows.insert("dead_letters", { queue, body, at });
  }
}
