/** The view of a training run: its counters, its trainer's last report, and why it waits. */
import type { RunView } from "../../../contract/run.ts";
import { evalName, evalsOf, REFERENCE_JUDGE } from "../../../contract/training-request.ts";
import type { StepMetrics, TrainingView } from "../../../contract/training-view.ts";
import { leadOf } from "../../../core/training/numbering.ts";
import type { TrainingRecords } from "../../messages/run-records.ts";
import type { TrainingSpec } from "../../messages/training-wire.ts";
import type { RunSpec } from "../../messages/wire.ts";
import type { RunHead } from "../schema.ts";
import { pendingOf } from "../standing.ts";
import type { RunStore } from "../store.ts";
import type { KnownTrainer, TrainingState } from "../training-state.ts";
import { allCut, isBehind, isFull, openable } from "./plan.ts";

/** Null for a run that trains nothing. */
export function trainingView(store: RunStore, spec: RunSpec): TrainingView | null {
  const { training } = store.head();
  const asked = spec.training;
  if (asked === undefined || training === null) return null;
  const { trainer } = training;
  return {
    step: training.step,
    max_steps: asked.max_steps,
    steps_trained: trainer.acked_step,
    policy_version: trainer.serving,
    published: trainer.published,
    applied: { ...trainer.applied, by_replica: { ...trainer.applied.by_replica } },
    lead: leadOf({ step: training.step, published: trainer.published }),
    target_lead: asked.lead,
    max_lag: training.max_lag,
    max_off_policy_steps: asked.max_off_policy_steps,
    generation: trainer.generation,
    groups: {
      open: training.groups_open,
      buffered: training.buffered.groups,
      shipped: training.shipped,
      dropped: { ...training.dropped },
    },
    buffered: bufferedOf(training),
    batches: batchesOf(store, asked, training),
    samples: samplesOf(training),
    trainer: trainerOf(asked, trainer),
    evals: store.training.evals().flatMap(({ place, step, run_id, policy_version }) => {
      const own = evalsOf(asked)[place];
      const name = own === undefined ? spec.environment.id : evalName(own, spec.environment);
      return run_id === null ? [] : [{ name, step, run_id, policy_version }];
    }),
    ...askedOf(spec, asked),
    ...membersOf(asked, training),
  };
}

function samplesOf({ branches, untrainable, flagged, filtered, prompts }: TrainingState): TrainingView["samples"] {
  return {
    ...{ ...branches, untrainable: { ...untrainable } },
    ...(flagged !== undefined && { flagged: { ...flagged } }),
    ...(filtered !== undefined && { filtered: { ...filtered } }),
    ...(prompts !== undefined && { prompts: { ...prompts } }),
  };
}

function bufferedOf({ buffered }: TrainingState): TrainingView["buffered"] {
  const { rollouts, samples, tokens, bytes } = buffered;
  return { rollouts, samples, tokens, bytes };
}

function batchesOf(store: RunStore, asked: TrainingSpec, training: TrainingState): TrainingView["batches"] {
  const counted = store.training.countBatches();
  const of = (state: string) => counted[state] ?? 0;
  const { leased_step } = training.trainer;
  const leased = leased_step === null ? 0 : 1;
  const full = isFull(asked.batch_size, training.buffered) && !allCut(asked, training);
  return {
    shipped: training.batches.shipped,
    held: full && isBehind(asked, training) ? 1 : 0,
    ready: Math.max(0, of("building") + of("built") + of("ready") - leased),
    leased,
    acked: of("acked"),
    dead: of("dead"),
    voided: of("void"),
    empty: training.empty,
  };
}

function trainerOf(asked: TrainingSpec, { trainer, epoch, time }: KnownTrainer): TrainingView["trainer"] {
  if (trainer === null) return null;
  const { id, kind, last_seen_at } = trainer;
  const seen = last_seen_at === null ? null : Math.floor(last_seen_at / 1000);
  const { delivery } = asked.trainer;
  return { id, kind, epoch, delivery, last_seen_at: seen, ...time };
}

function askedOf(spec: RunSpec, asked: TrainingSpec) {
  const { min_group_size, batch_size, advantage, length_penalty, curriculum, holdout } = asked;
  const { initial_weights, loss_aggregation, sample_filters } = asked;
  const group_size = spec.rollouts_per_example;
  const model = spec.judges?.[REFERENCE_JUDGE]?.model ?? "";
  return {
    ...{ group_size, min_group_size, batch_size, advantage, length_penalty, curriculum, holdout },
    ...(asked.reference !== undefined && { reference: { model, kl_weight: asked.reference.kl_weight } }),
    ...(sample_filters !== undefined && { sample_filters: [...sample_filters] }),
    ...(loss_aggregation !== undefined && { loss_aggregation }),
    ...(initial_weights !== undefined && { initial_weights }),
  };
}

function membersOf({ members }: TrainingSpec, { shared }: TrainingState): Pick<TrainingView, "members"> {
  if (members === undefined) return {};
  const all = members.map(({ share, ...member }, at) => {
    const ratio = share?.ratio ?? null;
    return { ...member, ratio, groups_opened: share === undefined ? null : (shared?.opened[at] ?? 0) };
  });
  return { members: all };
}

/** Why a training run opens no groups; null if its trainer is not the reason. */
export function trainingStatusReason(store: RunStore, spec: RunSpec): RunView["status_reason"] {
  const { training, running, paused } = store.head();
  const asked = spec.training;
  if (asked === undefined || training === null) return null;
  const { trainer, step } = training;
  const { dead } = trainer;
  if (paused && dead !== null) {
    return { state: "paused", reason: `batch ${dead.step} was given up: ${dead.reason}` };
  }
  if (paused || running > 0) return null;
  const lead = leadOf({ step, published: trainer.published });
  const waits = allCut(asked, training) || isBehind(asked, training);
  if (!waits) return servingStatusReason(spec, store.head(), trainer);
  const who = trainer.trainer === null ? "no trainer has registered" : null;
  const behind = `${lead} ${lead === 1 ? "batch is" : "batches are"} ahead of version ${trainer.published}`;
  const last = `the trainer has the last batches; ${trainer.acked_step} of ${asked.max_steps} steps are trained`;
  const why = allCut(asked, training) ? last : behind;
  return { state: "waiting_for_trainer", reason: who === null ? why : `${who}: ${why}` };
}

/** Why no groups are opened although the trainer is not behind: its engines serve another version. */
function servingStatusReason(
  spec: RunSpec,
  head: RunHead,
  { applied, published, serving }: KnownTrainer,
): RunView["status_reason"] {
  const opens = pendingOf(spec, head) + openable(spec, head) > 0;
  if (opens || (serving === published && applied.max <= published)) return null;
  const behind = Object.entries(applied.by_replica).filter(([, version]) => version !== published);
  const who = behind.map(([name, version]) => `${name} serves version ${version}`).join(", ");
  return {
    state: "waiting_for_trainer",
    reason: `version ${published} is published, but ${who}: nobody has reported ${published} as applied there`,
  };
}

/** The series, by step. Times are whole seconds. */
export function stepsOf(store: RunStore, after: number, limit: number): StepMetrics[] {
  return store.training.steps(after, limit).map(({ step, at, metrics }) => ({
    step,
    at: Math.floor(at / 1000),
    values: JSON.parse(metrics) as StepMetrics["values"],
  }));
}

/** For an audit: the counters, the same numbers from rows, and what must be in R2. Null if the run trains nothing. */
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
