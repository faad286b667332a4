/** A training run by hand, on an object's real storage: its rollouts answer, its scorer and its trainer report. */

import { env } from "cloudflare:workers";
import { RunObject } from "../../src/index.ts";
import type { RolloutEntry } from "../../src/kernel/messages/run-records.ts";
import { NO_TIME, sharesOf } from "../../src/kernel/messages/trainer-time.ts";
import type { GroupSamples, TrainerSnapshot, TrainingSpec } from "../../src/kernel/messages/training-wire.ts";
import type { RolloutReport, RunSpec } from "../../src/kernel/messages/wire.ts";
import { answer, dispatch, score } from "../../src/kernel/run/accounting.ts";
import { ACCOUNTING_HOOKS } from "../../src/kernel/run/object.ts";
import { groupSizeIn, pendingOf } from "../../src/kernel/run/standing.ts";
import { RunStore } from "../../src/kernel/run/store.ts";
import { cutBatches } from "../../src/kernel/run/training/batches.ts";
import { takeNews } from "../../src/kernel/run/training/news.ts";
import { openable, openGroups, TaskOrder } from "../../src/kernel/run/training/plan.ts";
import { voidStale } from "../../src/kernel/run/training/stale.ts";
import type { TrainingState } from "../../src/kernel/run/training-state.ts";
import { inside } from "./platform.ts";
import { idOf, RUN_SPEC, reportOf, scoreOf } from "./run-rows.ts";

export const TRAINING: TrainingSpec = {
  trainer: { delivery: "pull", encoding: "jsonl", max_attempts: 3, lease_s: 900 },
  ...{ max_steps: 3, min_group_size: 2, batch_size: { rollouts: 4 } },
  ...{ advantage: { name: "mean" }, length_penalty: null, zero_variance: "drop" },
  ...{ curriculum: { name: "cycle" }, lead: 1, max_off_policy_steps: 2, holdout: 0, eval: null },
};

export const RIGHT = { failure: null, cancelled: null } as const;

export class TrainingByHand {
  store: RunStore;
  readonly spec: RunSpec;
  readonly storage: DurableObjectStorage;
  now = 1000;
  /** What the trainer's object would report. */
  trainer = { seq: 0, generation: 0, reset_to: 0, published: 0, acked_step: 0 };
  #tasks: TaskOrder;

  constructor(storage: DurableObjectStorage, training: Partial<TrainingSpec> = {}, given: Partial<RunSpec> = {}) {
    this.storage = storage;
    this.store = new RunStore(storage, ACCOUNTING_HOOKS);
    this.#tasks = new TaskOrder(this.store);
    const group = { rollouts_per_example: 2, whole_groups: true, min_scored: 0 };
    this.spec = { ...RUN_SPEC, ...group, training: { ...TRAINING, ...training }, ...given };
    this.store.create(this.spec);
  }

  get training(): TrainingState {
    const { training } = this.store.head();
    if (training === null) throw new Error("it trains nothing");
    return training;
  }

  restart(): void {
    this.store = new RunStore(this.storage, ACCOUNTING_HOOKS);
    this.#tasks = new TaskOrder(this.store);
  }

  rows(status: RolloutEntry["status"]): RolloutEntry[] {
    return this.storage.sql
      .exec<RolloutEntry>("select * from rollouts where status = ? order by seq", status)
      .toArray();
  }

  group(index: number): RolloutEntry[] {
    return this.store.group(index);
  }

  /** Dispatches as the dispatcher does, without a limit on running rollouts: at most `most`. Returns how many. */
  dispatch(most = Number.POSITIVE_INFINITY): number {
    const head = this.store.head();
    if (head.stop !== null || head.settled_at !== null || head.paused) return 0;
    const room = pendingOf(this.spec, head) + openable(this.spec, head);
    const count = Math.min(most, room, 1000);
    if (count === 0) return 0;
    this.store.transaction(() => {
      const members = count - pendingOf(this.spec, this.store.head());
      openGroups(this.store, this.spec, this.#tasks, members);
      const opened = Math.min(count, pendingOf(this.spec, this.store.head()));
      dispatch(this.store, this.spec, opened, idOf, this.now);
    });
    return count;
  }

  answer(row: RolloutEntry, how: Pick<RolloutReport, "failure" | "cancelled"> = RIGHT): void {
    const member = this.store.training.group(row.group_index)?.member ?? null;
    answer(this.store, this.spec, { ...reportOf(row, how), ...(member !== null && { member }) }, this.now);
  }

  /** Scores a group whose members have all answered; other groups are unchanged. */
  score(index: number, rewards: readonly (number | null)[], samples = true): void {
    const rows = this.group(index);
    const whole = rows.length === groupSizeIn(this.store, this.spec, index);
    if (!whole || rows.some(({ status }) => status === "running")) return;
    const waiting = rows.filter(({ status }) => status === "scoring");
    const members = waiting.map((row) => scoreOf(row, rewards[row.slot] ?? null));
    const made = samples ? [this.samplesOf(index, waiting)] : [];
    score(this.store, this.spec, members, this.now, made);
  }

  samplesOf(group: number, rows: readonly RolloutEntry[]): GroupSamples {
    const version = this.store.training.group(group)?.dispatch_version ?? 0;
    const samples = rows.map(({ id }) => ({
      ...{ sample_id: `${id}.0`, rollout_id: id, tokens: 10, trainable_tokens: 4 },
      ...{ policy_version_start: version, policy_version_end: version },
    }));
    const object = { sha256: `${group}`.padStart(64, "0"), bytes: 100, format: "rl.sample/1" };
    return {
      ...{ group, object, samples, untrainable: {} },
      branches: { clean: 1, forked: 0, realigned: 0 },
      transitions: { clean: 1, forked: 0, realigned: 0 },
      lengths: Object.fromEntries(rows.map(({ id }) => [id, { output: 4, total: 10, turns: 1 }])),
    };
  }

  cut(): number {
    const cut = cutBatches(this.store, this.spec, this.now);
    voidStale(this.store, this.spec, { idOf, now: this.now });
    for (const batch of this.store.training.batchesIn("building")) {
      const written = { sha256: `${batch.step}`, manifest_key: "k" };
      this.store.training.setBatch(batch, { ...written, state: "ready" });
    }
    return cut;
  }

  /** The trainer's object reports its state. */
  tell(change: Partial<TrainerSnapshot> = {}): void {
    takeNews(this.store, this.spec, this.news(change), { idOf, now: this.now });
  }

  /** The next report of the trainer's object. */
  news(change: Partial<TrainerSnapshot> = {}): TrainerSnapshot {
    const { acked_step } = this.training.trainer;
    this.trainer = { ...this.trainer, ...change, seq: this.trainer.seq + 1 };
    const { seq, generation, reset_to, published } = this.trainer;
    const acks = [];
    for (let step = acked_step + 1; step <= this.trainer.acked_step; step += 1) {
      acks.push({ step, at: this.now, produced_version: step, metrics: { loss: step } });
    }
    return {
      ...{ seq, epoch: 1, generation, reset_to, published, serving: published },
      applied: { min: published, max: published, by_replica: {} },
      ...{ acked_step: this.trainer.acked_step, leased_step: null, acks, dead: null },
      ...{ trainer: null, time: sharesOf(NO_TIME), ...change, seq },
    };
  }

  /** The next batch is trained and its weights are published; false if none is ready. */
  train(): boolean {
    const step = this.trainer.acked_step + 1;
    if (step >= this.training.step) return false;
    this.tell({ acked_step: step });
    this.tell({ published: step });
    return true;
  }

  /** All rollouts answer, with rewards that differ. */
  settleGroups(rewards: readonly (number | null)[] = [0, 1]): void {
    for (const row of this.rows("running")) this.answer(row);
    const waiting = this.rows("scoring").map(({ group_index }) => group_index);
    for (const index of new Set(waiting)) this.score(index, rewards);
  }
}

/** Groups of two, batches of four, three steps, unless the test sets others. */
export function trainingByHand(
  training: Partial<TrainingSpec>,
  use: (run: TrainingByHand) => void,
  group = 2,
): Promise<void> {
  const stub = env.RUN.getByName(crypto.randomUUID());
  return inside(stub, RunObject, (_, { storage }) =>
    use(new TrainingByHand(storage, training, { rollouts_per_example: group })),
  );
}

/** This many groups, complete and scored. */
export function fill(run: TrainingByHand, groups: number, rewards: readonly (number | null)[] = [0, 1]): void {
  run.dispatch(groups * run.spec.rollouts_per_example);
  run.settleGroups(rewards);
}
