/**
 * The rows of a run's training, in its own SQLite: reads and single-row writes. Writes that belong together are in
 * groups.ts, batches.ts and news.ts of training/.
 */
import { Rows } from "../kit/rows.ts";
import type { BufferedGroup, TrainBatch, TrainEval, TrainGroup } from "./training-state.ts";

export interface MemberRow {
  readonly [column: string]: SqlStorageValue;
  readonly id: string;
  readonly status: string;
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly reward: number | null;
  readonly is_truncated: number;
  readonly member: string | null;
}

export class TrainingStore {
  readonly #sql: SqlStorage;
  readonly #rows: Rows;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#rows = new Rows(sql);
  }

  openGroup(
    group: Pick<TrainGroup, "group_index" | "example_index" | "dispatch_version"> &
      Partial<Pick<TrainGroup, "member" | "size" | "slots_before">>,
  ): void {
    this.#rows.insert("train_groups", { ...group, state: "open" });
  }

  group(index: number): TrainGroup | null {
    return this.#rows.one<TrainGroup>("select * from train_groups where group_index = ?", index);
  }

  /**
   * The first `count` slots after the first `before` ones, in a run that opens groups by ratio. `largest`: the size of
   * its largest group.
   */
  slotsAfter(before: number, count: number, largest: number): { group: number; slot: number }[] {
    const groups = this.#rows.all<{ group_index: number; size: number; slots_before: number }>(
      `select group_index, size, slots_before from train_groups
        where slots_before > ? and slots_before < ? order by slots_before`,
      before - largest,
      before + count,
    );
    return groups.flatMap(({ group_index: group, size, slots_before }) => {
      const slots = Array.from({ length: size }, (_, slot) => ({ group, slot, place: slots_before + slot }));
      return slots
        .filter(({ place }) => place >= before && place < before + count)
        .map(({ slot }) => ({ group, slot }));
    });
  }

  setGroup(index: number, columns: Partial<TrainGroup>): void {
    this.#rows.set("train_groups", { group_index: index }, columns);
  }

  members(group: number): MemberRow[] {
    return this.#rows.all<MemberRow>(
      `select id, status, outcome, reason, reward, is_truncated, member from rollouts
        where group_index = ? and superseded_by is null order by slot`,
      group,
    );
  }

  /** The member of a group of environments that plays this group; null if none of its rollouts could start. */
  memberOf(group: number): string | null {
    const sql = "select member from rollouts where group_index = ? and member is not null limit 1";
    return this.#rows.one<{ member: string }>(sql, group)?.member ?? null;
  }

  /** Buffered groups, in the order of their completion. */
  buffered(): BufferedGroup[] {
    return this.#rows.all<BufferedGroup>(
      `select group_index, dispatch_version, max_version, rollouts, samples, tokens, bytes
        from train_groups where state = 'buffered' order by position`,
    );
  }

  /** Open groups of versions below `below`, or above `above`. */
  openOutside(below: number, above: number): TrainGroup[] {
    return this.#rows.all<TrainGroup>(
      `select * from train_groups where state = 'open' and (dispatch_version < ? or dispatch_version > ?)
        order by group_index`,
      below,
      above,
    );
  }

  /** Marks all open groups: weights above `version` are discarded. */
  voidAbove(version: number): void {
    this.#sql.exec(
      "update train_groups set void_above = min(ifnull(void_above, ?), ?) where state = 'open'",
      version,
      version,
    );
  }

  shippedFor(step: number): TrainGroup[] {
    return this.#rows.all<TrainGroup>("select * from train_groups where step = ? order by position", step);
  }

  shippedAfter(step: number): TrainGroup[] {
    return this.#rows.all<TrainGroup>("select * from train_groups where step > ? order by position", step);
  }

  /** Values for the series: of groups that were completed while this step was collected, */
  arrivedFacts(step: number): string[] {
    return this.#facts("arrived_step", step);
  }

  /** and of groups shipped for it. Only the facts column is read, since the samples are long. */
  shippedFacts(step: number): string[] {
    return this.#facts("step", step);
  }

  #facts(column: "arrived_step" | "step", step: number): string[] {
    return this.#rows
      .all<{ facts: string }>(
        `select facts from train_groups where ${column} = ? and facts is not null order by position`,
        step,
      )
      .map(({ facts }) => facts);
  }

  /** The size of a group; null in a run that opens groups in the order of its rows. */
  groupSize(index: number): number | null {
    const sql = "select size from train_groups where group_index = ?";
    return this.#rows.one<{ size: number | null }>(sql, index)?.size ?? null;
  }

  /** Mean rewards of complete groups after `position`, in order. */
  meansAfter(position: number): { position: number; example_index: number; mean: number }[] {
    return this.#rows.all(
      `select position, example_index, mean from train_groups
        where position > ? and mean is not null order by position`,
      position,
    );
  }

  addBatch(batch: Omit<TrainBatch, "state" | "sha256" | "manifest_key" | "push_seq" | "pushed_at">): void {
    this.#rows.insert("train_batches", { ...batch, state: "building" });
  }

  batch(step: number, generation: number): TrainBatch | null {
    return this.#rows.one<TrainBatch>(
      "select * from train_batches where step = ? and generation = ?",
      step,
      generation,
    );
  }

  setBatch({ step, generation }: TrainBatch, columns: Partial<TrainBatch>): void {
    this.#rows.set("train_batches", { step, generation }, columns);
  }

  batchesIn(state: TrainBatch["state"]): TrainBatch[] {
    return this.#rows.all<TrainBatch>("select * from train_batches where state = ? order by step", state);
  }

  /** Batches of the steps after `step` up to `last`, without void ones. */
  batchesBetween(step: number, last: number): TrainBatch[] {
    return this.#rows.all<TrainBatch>(
      `select * from train_batches where step > ? and step <= ? and state != 'void' order by step`,
      step,
      last,
    );
  }

  /** Batches taken by a trainer, after the one with this number, in order. */
  pushedAfter(pushSeq: number, limit: number): TrainBatch[] {
    return this.#rows.all<TrainBatch>(
      "select * from train_batches where push_seq > ? order by push_seq limit ?",
      pushSeq,
      limit,
    );
  }

  countBatches(): Record<string, number> {
    const rows = this.#rows.all<{ state: string; n: number }>(
      "select state, count(*) as n from train_batches group by state",
    );
    return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
  }

  /** Adds values to a step; a later value replaces an earlier one, also if it is null. */
  noteStep(step: number, at: number, values: Readonly<Record<string, number | null>>): void {
    const sql = "select metrics from train_steps where step = ?";
    const known = this.#rows.one<{ metrics: string }>(sql, step);
    this.#sql.exec(
      `insert into train_steps values (?, ?, ?)
        on conflict (step) do update set metrics = excluded.metrics`,
      step,
      at,
      JSON.stringify({ ...JSON.parse(known?.metrics ?? "{}"), ...values }),
    );
  }

  /** True if the series have a value that the trainer measured at this step. */
  isMeasured(step: number): boolean {
    const row = this.#rows.one<{ measured: number }>(
      `select exists (select 1 from json_each(metrics) where key like 'trainer/%') as measured
        from train_steps where step = ?`,
      step,
    );
    return row?.measured === 1;
  }

  forgetStepsAfter(step: number): void {
    this.#sql.exec("delete from train_steps where step > ?", step);
  }

  steps(after: number, limit: number): { step: number; at: number; metrics: string }[] {
    return this.#rows.all(
      "select step, at, metrics from train_steps where step > ? order by step limit ?",
      after,
      limit,
    );
  }

  addEval(entry: Pick<TrainEval, "place" | "step" | "generation" | "policy_version" | "due_at">): void {
    this.#rows.insert("train_evals", { ...entry, state: "due" }, "ignore");
  }

  setEval({ step, generation, place }: TrainEval, columns: Partial<TrainEval>): void {
    this.#rows.set("train_evals", { step, generation, place }, columns);
  }

  evals(): TrainEval[] {
    return this.#rows.all<TrainEval>("select * from train_evals order by step, generation, place");
  }

  /** Evals that must still be started or followed. */
  openEvals(): TrainEval[] {
    return this.#rows.all<TrainEval>(
      "select * from train_evals where state in ('due', 'running') order by step, generation, place",
    );
  }
}
