/** What an audit compares of a training run: its counters, the same counted from its rows, and what must be in R2. */
import type { TrainingRecords } from "../../contract/run-records.ts";
import type { RunHead } from "../schema.ts";

/** Null for a run that trains nothing. */
export function trainingRecords(sql: SqlStorage, { training }: RunHead): TrainingRecords | null {
  if (training === null) return null;
  const dropped = Object.values(training.dropped).reduce((sum, count) => sum + count, 0);
  const { groups_opened, groups_open, positions, buffered, shipped, batches } = training;
  const row = sql
    .exec<Record<string, number>>(
      `select count(*) as groups_opened, total(state = 'open') as groups_open, count(position) as positions,
        total(state = 'buffered') as groups_buffered, total(state = 'shipped') as groups_shipped,
        total(state = 'dropped') as groups_dropped,
        total(iif(state = 'buffered', rollouts, 0)) as rollouts_buffered,
        (select count(*) from train_batches where state != 'void') as batches_shipped
      from train_groups`,
    )
    .one();
  const written = sql
    .exec<{ batch_id: string }>("select batch_id from train_batches where state not in ('building', 'void')")
    .toArray()
    .map(({ batch_id }) => batch_id);
  const samples = sql
    .exec<{ sha256: string }>(
      "select json_extract(made, '$.object.sha256') as sha256 from train_groups where state = 'shipped'",
    )
    .toArray()
    .map(({ sha256 }) => sha256);
  return {
    counters: {
      ...{ groups_opened, groups_open, positions, groups_buffered: buffered.groups },
      ...{ groups_shipped: shipped, groups_dropped: dropped },
      ...{ rollouts_buffered: buffered.rollouts, batches_shipped: batches.shipped },
    },
    run_rows: row,
    batches: written,
    samples,
  };
}
