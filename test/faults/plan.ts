/**
 * The faults of one plan, decided by its seed alone: pure, so that a failed seed can be played again. Moments are
 * shares of the model's answers (0 to 1), because clocks differ from machine to machine.
 */
import { seededRandom } from "../../src/contract/random.ts";

/** The process that gets kill -9. */
export type Victim = "node" | "workerd" | "group";

export interface Kill {
  readonly kind: "kill";
  readonly victim: Victim;
  readonly at: number;
  /** Milliseconds after that share, so that kills do not always hit the same point of a turn. */
  readonly wait_ms: number;
  /** The minimum number of calls that wait for their answers when it happens; absent: as many as it needs to count. */
  readonly least?: number;
}

/** A store refuses, or does the work and then reports a failure. */
export interface StoreFailure {
  readonly kind: "store";
  readonly store: "STORE" | "DB";
  readonly at: number;
  readonly for_ms: number;
}

/** A request of the run's owner: a pause of some length, a retry of failed rollouts, or a cancel. */
export interface Control {
  readonly kind: "control";
  readonly does: "pause" | "retry" | "cancel";
  readonly at: number;
  /** For a pause. */
  readonly for_ms: number;
}

export type Incident = Kill | StoreFailure | Control;

/** Chances, per message sent. */
export interface QueueFaults {
  readonly drop: number;
  readonly duplicate: number;
  readonly delay: number;
  /** Per batch: sent in another order. */
  readonly reorder: number;
}

export interface FaultPlan {
  readonly seed: number;
  readonly environment: "calculator" | "guess-number" | "grid-walk" | "reverse-text" | "errands";
  /** Only for the errands environment: judges are called as well. */
  readonly judged: boolean;
  readonly num_examples: number;
  readonly rollouts_per_example: number;
  readonly max_concurrent: number;
  readonly latency_ms: number;
  /**
   * For every rollout, in an environment that continues while the model calls tools; null for a random number from one
   * to six.
   */
  readonly turns: number | null;
  /** Characters of each answer: long ones make trajectories that are stored in R2 separately. */
  readonly answer_characters: number;
  /** The chance that a call meets a fault of the model. */
  readonly model_faults: number;
  /** The model replies differently each time, even to the same call: there is no calm run to compare with. */
  readonly fickle: boolean;
  /** The chance that an answer between objects is lost. */
  readonly lost_replies: number;
  readonly queues: QueueFaults;
  /** False: nothing is dropped after the last kill. A later drop costs its timeout, up to 30 s. */
  readonly late_drops: boolean;
  /** Its organisation pays for it, at prices above 0. */
  readonly billing: boolean;
  /** Its environment is published, and plays in an isolate of its own. */
  readonly isolated: boolean;
  /** Its run has gatherers, as runs with more than 5,000 rollouts at once have. */
  readonly gathered: boolean;
  /** How many D1 databases the platform has; of several, the plan's organisation is not in the first. */
  readonly databases: number;
  /** The chance that a call of an isolate fails as if the isolate were lost: before it began, or after it was done. */
  readonly lost_isolates: number;
  /** False: the run's alarm never fires. Only to prove that the suite detects it. */
  readonly reconcile: boolean;
  /** In the order of `at`. */
  readonly incidents: readonly Incident[];
}

/** The distance between the seeds of organisations that share a platform: more than one session plays. */
const SEEDS_APART = 1_000_000;

const ENVIRONMENTS = ["calculator", "guess-number", "grid-walk", "errands", "errands", "reverse-text"] as const;

/** Settings for every plan, whatever its seed. */
export interface PlanShape {
  readonly turns?: number | null;
  /** Absent: decided by the seed. */
  readonly judged?: boolean | undefined;
  readonly billing?: boolean;
  readonly isolated?: boolean;
  readonly gathered?: boolean;
  readonly databases?: number;
}

export function planOf(
  seed: number,
  rollouts: number,
  { turns = null, judged, billing = false, isolated = false, gathered = false, databases = 1 }: PlanShape = {},
): FaultPlan {
  const random = seededRandom("fault plan", seed);
  const upTo = (least: number, most: number) => least + random() * (most - least);
  const rollouts_per_example = pick(
    [1, 2, 4].filter((size) => rollouts % size === 0),
    random(),
  );
  const environment = turns === null ? pick(ENVIRONMENTS, random()) : "errands";
  const plan = {
    seed,
    environment: judged === true ? "errands" : environment,
    num_examples: rollouts / rollouts_per_example,
    rollouts_per_example,
    max_concurrent: Math.round(upTo(24, 64)),
    turns,
    latency_ms: Math.round(upTo(60, 200)),
    answer_characters: random() < 0.5 ? 20_000 : 20,
    model_faults: random() < 0.8 ? upTo(0.02, 0.15) : 0,
    queues: {
      drop: random() < 0.7 ? upTo(0.05, 0.4) : 0,
      duplicate: upTo(0, 0.4),
      delay: upTo(0, 0.2),
      reorder: upTo(0, 1),
    },
    late_drops: random() < 0.1,
    reconcile: true,
    billing,
    isolated,
    gathered,
    databases,
    lost_isolates: isolated ? 0.02 + 0.08 * seededRandom("fault plan, isolated", seed)() : 0,
    incidents: incidentsOf(random),
  } as const;
  const asks = random() < 0.5;
  const judges = plan.environment === "errands" && (judged ?? asks);
  return { ...plan, judged: judges, ...alsoOf(seed, plan.incidents, judges) };
}

/** Drawn from separate random numbers, so that existing seeds keep their meaning. */
function alsoOf(
  seed: number,
  incidents: readonly Incident[],
  judged: boolean,
): Pick<FaultPlan, "fickle" | "lost_replies" | "incidents"> {
  const random = seededRandom("fault plan, also", seed);
  const lost_replies = random() < 0.6 ? 0.01 + random() * 0.09 : 0;
  const fickle = random() < 0.3;
  const controls: Incident[] = [];
  if (random() < 0.4) controls.push(control("pause", 0.1 + random() * 0.6, 300 + random() * 1700));
  // Attempts that take over a trajectory bring its judgements along: these would be counted twice.
  if (random() < 0.4 && !judged) controls.push(control("retry", 0.3 + random() * 0.4));
  if (random() < 0.15) {
    const at = 0.7 + random() * 0.1;
    const wait_ms = Math.round(random() * 100);
    // The receiver of the end may crash before it is notified.
    const kill: Kill = { kind: "kill", victim: random() < 0.5 ? "workerd" : "group", at, wait_ms };
    controls.push(control("cancel", at), kill);
  }
  return {
    fickle,
    lost_replies,
    incidents: [...incidents, ...controls].toSorted((a, b) => a.at - b.at),
  };
}

function control(does: Control["does"], at: number, for_ms = 0): Control {
  return { kind: "control", does, at, for_ms: Math.round(for_ms) };
}

/**
 * Plans of several organisations on one platform: the plan itself, and the same plan with other seeds, without its
 * incidents.
 */
export function sharedBy(plan: FaultPlan, tenants: number): FaultPlan[] {
  const others = Array.from({ length: tenants - 1 }, (_, index): FaultPlan => {
    return { ...plan, seed: plan.seed + (index + 1) * SEEDS_APART, incidents: [] };
  });
  return [plan, ...others];
}

/** The plan with every message dropped and no reconciliation: it must fail. */
export function sabotaged(plan: FaultPlan): FaultPlan {
  const queues = { ...plan.queues, drop: 1 };
  return { ...plan, queues, late_drops: true, reconcile: false, incidents: [] };
}

/**
 * The plan with some of its kills moved to half their moments, as soon as a call waits: those that hit nothing in
 * flight proved nothing. `inFlight`: at each of its kills, in order. Null if each kill hit something, or happened in a
 * cancelled run.
 */
export function placedAgain(plan: FaultPlan, inFlight: readonly number[]): FaultPlan | null {
  const cancelled = plan.incidents.find((one) => one.kind === "control" && one.does === "cancel");
  const kills = plan.incidents.filter(({ kind }) => kind === "kill");
  const missed = kills.filter(({ at }, index) => {
    return inFlight[index] === 0 && at < (cancelled?.at ?? 1);
  });
  if (missed.length === 0) return null;
  const incidents = plan.incidents.map((incident): Incident => {
    if (incident.kind !== "kill" || !missed.includes(incident)) return incident;
    return { ...incident, at: incident.at / 2, wait_ms: 0, least: 1 };
  });
  return { ...plan, incidents: incidents.toSorted((a, b) => a.at - b.at) };
}

function incidentsOf(random: () => number): Incident[] {
  const kills = Array.from({ length: 1 + Math.floor(random() * 3) }, (): Kill => {
    const victim = pick(["node", "workerd", "group"] as const, random());
    return {
      kind: "kill",
      victim,
      at: 0.05 + random() * 0.6,
      wait_ms: Math.round(random() * 100),
    };
  });
  const failures = Array.from({ length: Math.floor(random() * 4) }, (): StoreFailure => {
    const store = pick(["STORE", "DB"] as const, random());
    return { kind: "store", store, at: random() * 0.8, for_ms: Math.round(500 + random() * 3500) };
  });
  return [...kills, ...failures].sort((a, b) => a.at - b.at);
}

function pick<Item>(items: readonly [Item, ...Item[]] | readonly Item[], random: number): Item {
  const item = items[Math.floor(random * items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}
