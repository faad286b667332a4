/**
 * The faults of one training run, decided by its seed alone. Moments are steps, because a trainer's progress does not
 * depend on a machine's clock.
 */
import { seededRandom } from "../../../src/contract/random.ts";
import type { CrashPoint } from "../../fakes/scripted-trainer.ts";
import type { QueueFaults, Victim } from "../plan.ts";

/** The trainer crashes while it has that step's batch; the next trainer gets its disk. */
export interface TrainerCrash {
  readonly step: number;
  readonly point: CrashPoint;
}

/** The platform is killed while the trainer is at that step, this many milliseconds after it got the batch. */
export interface PlatformKill {
  readonly step: number;
  readonly wait_ms: number;
  readonly victim: Victim;
}

export interface StoreOutage {
  readonly step: number;
  readonly store: "STORE" | "DB";
  readonly for_ms: number;
}

export interface TrainingPlan {
  readonly seed: number;
  readonly environment: "guess-number" | "reverse-text";
  readonly max_steps: number;
  readonly group_size: number;
  readonly batch_rollouts: number;
  readonly lead: number;
  readonly max_off_policy_steps: number;
  readonly zero_variance: "drop" | "refill" | "keep";
  readonly latency_ms: number;
  readonly queues: QueueFaults;
  /** At this step the trainer goes back to the version before the last one it published; null for never. */
  readonly rewinds_at: number | null;
  /** Whether weights are published by the acknowledgement itself, or by a report after it. */
  readonly publishes_with_ack: boolean;
  readonly crashes: readonly TrainerCrash[];
  readonly kills: readonly PlatformKill[];
  readonly outages: readonly StoreOutage[];
}

const CRASH_POINTS: readonly CrashPoint[] = [
  "after the lease",
  "before the checkpoint",
  "after the checkpoint",
  "before the ack is read",
  "after the ack",
  "after publishing",
];

export function trainingPlanOf(seed: number): TrainingPlan {
  const random = seededRandom("training fault plan", seed);
  const upTo = (least: number, most: number) => least + random() * (most - least);
  const whole = (least: number, most: number) => Math.floor(upTo(least, most + 1));
  const pick = <Item>(items: readonly Item[]): Item => {
    const item = items[whole(0, items.length - 1)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  };
  const max_steps = whole(5, 8);
  const aStep = () => whole(1, max_steps);
  return {
    seed,
    environment: pick(["guess-number", "reverse-text"] as const),
    max_steps,
    group_size: pick([2, 4]),
    batch_rollouts: pick([8, 12, 16]),
    lead: whole(0, 2),
    max_off_policy_steps: whole(1, 4),
    zero_variance: pick(["drop", "refill", "keep", "keep"] as const),
    latency_ms: whole(5, 40),
    queues: {
      drop: random() < 0.5 ? upTo(0.05, 0.2) : 0,
      duplicate: upTo(0, 0.4),
      delay: upTo(0, 0.2),
      reorder: upTo(0, 1),
    },
    rewinds_at: random() < 0.4 ? whole(3, max_steps) : null,
    crashes: Array.from({ length: whole(1, 3) }, () => ({
      step: aStep(),
      point: pick(CRASH_POINTS),
    })),
    kills: Array.from({ length: whole(1, 2) }, () => ({
      step: aStep(),
      wait_ms: whole(0, 150),
      victim: pick(["node", "workerd", "group"] as const),
    })),
    outages: Array.from({ length: whole(0, 2) }, () => ({
      step: aStep(),
      store: pick(["STORE", "DB"] as const),
      for_ms: whole(300, 2000),
    })),
    publishes_with_ack: random() < 0.5,
  };
}
