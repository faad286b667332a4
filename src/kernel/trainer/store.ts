/**
 * Stores a trainer's object in its SQLite: its spec, its state, every batch and every version.
 *
 * Invariants. Nothing is written before `create`. One `save` is written completely or not at all, because it awaits
 * nothing. The table of batches has all of them; the state has only those that may still be handed out.
 */
import type { ServedWeights } from "../../core/training/numbering.ts";
import type { TrainerSnapshot, TrainerSpec } from "../messages/training-wire.ts";
import { type AckRecord, type DeliveredBatch, NEW_TRAINER, type TrainerState } from "./state.ts";
import {
  FIRST_SERVED,
  isSameWeights,
  isVoid,
  type Report,
  replicaOf,
  servedNow,
  type WeightRow,
} from "./weight-versions.ts";

/** Tables of a trainer's object. Times are epoch milliseconds. */

const TRAINER_SCHEMA = [
  // Every batch of the run: repeats of old calls are answered from here. `batch`: the whole batch as JSON.
  `create table batches (
    batch_id text primary key, generation integer not null, step integer not null,
    state text not null, batch text not null)`,
  "create index batches_by_step on batches (step, generation)",
  `create table versions (
    generation integer not null, version integer not null, id text not null, failed integer not null,
    label text, location text, sha256 text, at integer not null,
    primary key (version, generation))`,
  // Which weights were served from which time on.
  `create table served (
    id integer primary key, at integer not null, version integer not null, newest integer not null, taken_back integer not null)`,
  // Reports that were taken, so that a repeat changes nothing.
  `create table reports (
    epoch integer not null, version integer not null, state text not null, replica text not null,
    primary key (epoch, version, state, replica)) without rowid`,
];

const VERSIONS_LISTED = 100;
/** Acknowledgements in one snapshot; a run's object that lacks more asks again. */
const ACKS_LISTED = 200;
/** Changes of served weights that are kept: about 300 versions. For earlier turns the version is unknown. */
const SERVED_KEPT = 1000;

export class TrainerStore {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  #spec: TrainerSpec | undefined;
  #state: TrainerState | undefined;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
  }

  /** Null for an object that was never created. */
  spec(): TrainerSpec | null {
    this.#spec ??= this.#storage.kv.get<TrainerSpec>("spec");
    return this.#spec ?? null;
  }

  /** Must be called when the storage is freed. */
  forget(): void {
    this.#spec = undefined;
    this.#state = undefined;
  }

  create(spec: TrainerSpec): void {
    for (const statement of TRAINER_SCHEMA) this.#sql.exec(statement);
    this.#storage.kv.put("spec", spec);
    this.#spec = spec;
    this.#noteServed(FIRST_SERVED);
    this.save(NEW_TRAINER, 0);
  }

  state(): TrainerState {
    // A state that was stored before a field existed gets the field's initial value.
    this.#state ??= { ...NEW_TRAINER, ...this.#storage.kv.get<TrainerState>("state") };
    return this.#state;
  }

  save(state: TrainerState, now: number): void {
    const before = this.#state?.batches ?? [];
    if (state === this.#state) return;
    this.#lastServed(now);
    this.#noteServed(servedNow(state, now));
    for (const batch of state.batches) if (!before.includes(batch)) this.#put(batch);
    if (state.generation > (this.#state?.generation ?? 0)) {
      this.#sql.exec(
        "update batches set state = 'void', batch = json_set(batch, '$.state', 'void') where step > ?",
        state.reset_to,
      );
    }
    this.#storage.kv.put("state", state);
    this.#state = state;
  }

  #put(batch: DeliveredBatch): void {
    const { batch_id, generation, step, state } = batch;
    this.#sql.exec(
      `insert into batches (batch_id, generation, step, state, batch) values (?, ?, ?, ?, ?)
       on conflict do update set state = excluded.state, batch = excluded.batch`,
      ...[batch_id, generation, step, state, JSON.stringify(batch)],
    );
  }

  batchById(batchId: string): DeliveredBatch | null {
    return this.#batch("batch_id = ?", batchId);
  }

  /** The batch of the latest generation. */
  batchAtStep(step: number): DeliveredBatch | null {
    return this.#batch("step = ? order by generation desc limit 1", step);
  }

  #batch(where: string, value: string | number): DeliveredBatch | null {
    const sql = `select batch from batches where ${where}`;
    const row = this.#sql.exec<{ batch: string }>(sql, value).toArray()[0];
    return row === undefined ? null : JSON.parse(row.batch);
  }

  /** Acknowledgements of steps after this one. */
  acks(after: number): TrainerSnapshot["acks"] {
    const rows = this.#sql.exec<{ batch: string }>(
      "select batch from batches where step > ? and state = 'acked' order by step limit ?",
      ...[after, ACKS_LISTED],
    );
    return rows.toArray().flatMap(({ batch }) => {
      const { step, ack }: DeliveredBatch = JSON.parse(batch);
      return ack === null
        ? []
        : [{ step, at: ack.at, produced_version: step, metrics: ack.metrics, ...notFinite(ack) }];
    });
  }

  wasReported(asked: Report): boolean {
    const rows = this.#sql.exec(
      "select 1 from reports where epoch = ? and version = ? and state = ? and replica = ?",
      ...[asked.epoch, asked.version, asked.state, replicaOf(asked)],
    );
    return rows.toArray().length > 0;
  }

  /** `id`: for the version, if this is its first report. */
  noteReport(asked: Report, id: string, now: number): void {
    const { epoch, version, state, label, location, sha256 } = asked;
    this.#sql.exec(
      // A fleet may report the same about a replica again, after the replica was away.
      "insert or ignore into reports (epoch, version, state, replica) values (?, ?, ?, ?)",
      ...[epoch, version, state, replicaOf(asked)],
    );
    const known = this.weightsOf(version);
    const row = known.find((other) => !isVoid(this.state(), other));
    this.#sql.exec(
      `insert into versions (generation, version, id, failed, label, location, sha256, at)
       values (?, ?, ?, ?, ?, ?, ?, ?)
       on conflict do update set failed = excluded.failed, label = coalesce(excluded.label, label),
         location = coalesce(excluded.location, location),
         sha256 = coalesce(excluded.sha256, sha256), at = excluded.at`,
      ...[row?.generation ?? this.state().generation, version, row?.id ?? id],
      ...[state === "failed" ? 1 : 0, label ?? null, location ?? null, sha256 ?? null, now],
    );
  }

  /** In order, as far as they are kept. */
  served(now: number): ServedWeights[] {
    this.#lastServed(now);
    return this.#served("id");
  }

  #lastServed(now: number): ServedWeights {
    const [last] = this.#served("id desc limit 1");
    if (last !== undefined) return last;
    const first = servedNow(this.state(), now);
    this.#noteServed(first);
    return first;
  }

  #noteServed(served: ServedWeights): void {
    const [last] = this.#served("id desc limit 1");
    if (last !== undefined && isSameWeights(last, served)) return;
    const { at, version, newest, taken_back } = served;
    this.#sql.exec(
      "insert into served (at, version, newest, taken_back) values (?, ?, ?, ?)",
      ...[at, version, newest, taken_back],
    );
    this.#sql.exec("delete from served where id <= (select max(id) from served) - ?", SERVED_KEPT);
  }

  #served(order: string): ServedWeights[] {
    const sql = `select at, version, newest, taken_back from served order by ${order}`;
    return this.#sql.exec<ServedWeights & Record<string, SqlStorageValue>>(sql).toArray();
  }

  /** The latest versions, newest first. */
  weights(): WeightRow[] {
    return this.#weights("");
  }

  /** One version in every generation. */
  weightsOf(version: number): WeightRow[] {
    return this.#weights("where version = ?", version);
  }

  #weights(where: string, ...values: readonly number[]): WeightRow[] {
    const sql = `select generation, version, id, failed, label, location, sha256, at from versions
      ${where} order by version desc, generation desc limit ${VERSIONS_LISTED}`;
    return this.#sql.exec<WeightRow & Record<string, SqlStorageValue>>(sql, ...values).toArray();
  }
}

function notFinite({ reply: { not_finite } }: AckRecord): { not_finite?: readonly string[] } {
  return not_finite === undefined ? {} : { not_finite };
}
