/** What a case needs: rates, storage, dollars, and which limit it reaches first. */
import { LIMITS } from "../../src/contract/limits.ts";
import { KEPT_KB_PER_ROLLOUT, PRICES, RUN_KB_PER_ROLLOUT, SEGMENT_KB_PER_ROLLOUT } from "../bill.ts";
import type { Case } from "./cases.ts";
import { CLOUDFLARE, SHAPE } from "./policies.ts";
import type { QueuesModel } from "./queue-model.ts";
import { KINDS } from "./traffic.ts";
import type { World } from "./world.ts";

/** All rates are per second. */
export interface Outcome {
  readonly name: string;
  /** Of the figures in `ceilings`. */
  readonly unit: string;
  readonly rollouts: number;
  readonly turns: number;
  readonly requests: Readonly<Record<(typeof KINDS)[number], { readonly sum: number; readonly hottest: number }>>;
  /** Requests to the object of the fleet of one project; 0 if no calls go to a fleet. */
  readonly fleet: number;
  /** By cause. */
  readonly d1: { readonly reads: number; readonly writes: number; readonly causes: Readonly<Record<string, number>> };
  readonly queues: readonly QueueOutcome[];
  readonly r2: { readonly class_a: number; readonly class_b: number };
  readonly storage: { readonly d1_gb_a_day: number; readonly r2_gb_a_day: number; readonly objects_gb_a_day: number };
  readonly dollars_per_1000_rollouts: number;
  readonly ceilings: readonly Ceiling[];
}

/** Of the queues of a kind of message, all together. */
interface QueueOutcome {
  readonly name: string;
  readonly queues: number;
  readonly messages: number;
  /** Consumers that its messages kept busy. */
  readonly consumers: number;
  /** Consumers that they need at least: if messages wait, and batches are full. */
  readonly least_consumers: number;
  /** The most in one of the queues; consumers that worked at most, and messages that waited at most. */
  readonly fullest: {
    readonly messages: number;
    readonly least_consumers: number;
    readonly most_consumers: number;
    readonly most_waiting: number;
  };
}

/** `used`: the part of the limit that the case needs; above 1 it does not fit. `ends_at`: the case's figure at 1. */
export interface Ceiling {
  readonly what: string;
  readonly load: number;
  readonly limit: number;
  readonly used: number;
  readonly ends_at: number;
}

/** A row of `runs` with its index entries (docs/operations.md). */
const D1_KB_PER_RUN = 4.85;
const DAY_S = 86_400;
const MONTH_DAYS = 30;
const GB_PER_OBJECT = 0.128;
/** As in docs/cost.md: an object that is called is awake for so long, and consumers compute so long for a rollout. */
const AWAKE_S_PER_REQUEST = 0.1;
const CPU_MS_PER_ROLLOUT = 10;

export function outcomeOf(of: Case, world: World): Outcome {
  const { traffic } = world;
  const rate = (count: number) => count / of.countedS;
  const counted = (what: string) => rate(traffic.counted(what));
  const sumOf = (beginning: string) => traffic.names(beginning).reduce((sum, name) => sum + counted(name), 0);
  const requests = Object.fromEntries(
    KINDS.map((kind) => [kind, { sum: rate(traffic.sum(kind)), hottest: traffic.busiest(kind) }]),
  ) as Outcome["requests"];
  const turns = rate(world.turns);
  const causes = Object.fromEntries(traffic.names("d1 ").map((name) => [name.slice("d1 ".length), counted(name)]));
  const queues = world.queues.map((queue) => queueOutcome(queue, counted));
  const size = world.work.trajectoryBytes > LIMITS.inlineTrajectoryBytes ? "large" : "small";
  const rollouts = counted("rollouts");
  const perDay = (kb: number, count: number) => (kb * count * DAY_S) / 1e6;
  const outcome = {
    ...{ name: of.name, unit: of.unit, rollouts, turns, requests },
    fleet: traffic.busiest("fleet"),
    d1: { reads: sumOf("d1 read"), writes: sumOf("d1 write"), causes },
    ...{ queues, r2: { class_a: counted("r2 class A"), class_b: counted("r2 class B") } },
    storage: {
      d1_gb_a_day: perDay(D1_KB_PER_RUN, rollouts / of.rolloutsPerRun),
      r2_gb_a_day: perDay(SEGMENT_KB_PER_ROLLOUT[size], rollouts),
      objects_gb_a_day: perDay(RUN_KB_PER_ROLLOUT, rollouts),
    },
  };
  const dollars = dollarsPerSecond(outcome, {
    rows: counted("rows"),
    playerS: counted("player ms") / 1000,
    keptGb: (KEPT_KB_PER_ROLLOUT[size] * rollouts) / 1e6,
  });
  return {
    ...outcome,
    dollars_per_1000_rollouts: (1000 * dollars) / rollouts,
    ceilings: ceilingsOf(of, outcome),
  };
}

function queueOutcome({ name, all }: QueuesModel, counted: (what: string) => number): QueueOutcome {
  const each = all.map((queue) => {
    const messages = counted(`messages ${queue.name}`);
    const [worked, handled] = [counted(`consumer ms ${queue.name}`), counted(`handled ${queue.name}`)];
    return {
      messages,
      // What arrived needs so many, although there may be fewer.
      consumers: handled === 0 ? 0 : (messages * worked) / handled / 1000,
      least: (messages * queue.msInFullBatches()) / 1000,
    };
  });
  const sumOf = (read: (of: (typeof each)[number]) => number) => each.reduce((sum, one) => sum + read(one), 0);
  return {
    ...{ name, queues: all.length },
    messages: sumOf(({ messages }) => messages),
    consumers: sumOf(({ consumers }) => consumers),
    least_consumers: sumOf(({ least }) => least),
    fullest: {
      messages: Math.max(...each.map(({ messages }) => messages)),
      least_consumers: Math.max(...each.map(({ least }) => least)),
      most_consumers: Math.max(...all.map(({ mostBusy }) => mostBusy)),
      most_waiting: Math.max(...all.map(({ mostWaiting }) => mostWaiting)),
    },
  };
}

type Counted = Omit<Outcome, "ceilings" | "dollars_per_1000_rollouts">;

/** `playerS`: seconds of objects that play rollouts. `keptGb`: what they store, for a day. */
function dollarsPerSecond(
  { requests, queues, r2, d1, storage, rollouts }: Counted,
  { rows, playerS, keptGb }: { readonly rows: number; readonly playerS: number; readonly keptGb: number },
): number {
  const called = KINDS.reduce((sum, kind) => sum + requests[kind].sum, 0);
  // An object is awake at most all the time.
  const others = KINDS.filter((kind) => kind !== "rollout").reduce((sum, kind) => {
    const { sum: all, hottest } = requests[kind];
    const objects = Math.max(1, Math.round(all / Math.max(hottest, Number.MIN_VALUE)));
    return sum + Math.min(objects, all * AWAKE_S_PER_REQUEST);
  }, 0);
  const messages = queues.reduce((sum, queue) => sum + queue.messages, 0);
  /** GB that are stored in a second, and kept for a month. */
  const storedOf = (gbADay: number) => gbADay / DAY_S;
  const millions =
    called * PRICES.request +
    (playerS + others) * GB_PER_OBJECT * PRICES.gbSecond +
    (rows + d1.writes * 2) * PRICES.rowWritten +
    messages * (3 * PRICES.queueOperation + PRICES.invocation) +
    rollouts * CPU_MS_PER_ROLLOUT * PRICES.cpuMs +
    r2.class_a * PRICES.r2ClassA +
    r2.class_b * PRICES.r2ClassB;
  const stored =
    storedOf(storage.r2_gb_a_day) * PRICES.r2GbMonth +
    (storedOf(storage.objects_gb_a_day) + keptGb / MONTH_DAYS) * PRICES.objectGbMonth;
  return millions / 1e6 + stored;
}

function ceilingsOf(of: Case, outcome: Counted): Ceiling[] {
  const { requests, d1, queues, fleet } = outcome;
  const ceiling = (what: string, load: number, limit: number): Ceiling => {
    return { what, load, limit, used: load / limit, ends_at: of.figure / (load / limit) };
  };
  const all = [
    ceiling("statements of D1 a second", d1.reads + d1.writes, SHAPE.databases * CLOUDFLARE.d1Statements),
    ...KINDS.map((kind) =>
      ceiling(`requests to one ${kind} object`, requests[kind].hottest, CLOUDFLARE.objectRequests),
    ),
    ceiling("requests to one fleet object", fleet, CLOUDFLARE.objectRequests),
    ...queues.map(({ fullest, ...of }) =>
      ceiling(`consumers of ${oneOf(of)}, with full batches`, fullest.least_consumers, CLOUDFLARE.consumers),
    ),
    ...queues.map(({ fullest, ...of }) =>
      ceiling(`messages to ${oneOf(of)}`, fullest.messages, CLOUDFLARE.queueMessages),
    ),
    ceiling("max_concurrent of a run", of.maxConcurrent, LIMITS.maxConcurrent),
  ];
  return all.filter(({ load }) => load > 0).toSorted((one, other) => other.used - one.used);
}

function oneOf({ name, queues }: Pick<QueueOutcome, "name" | "queues">): string {
  return queues === 1 ? name : `the fullest of ${queues} ${name}`;
}

/** Days until the rows of runs fill D1; infinity if no run ends. */
export function daysOfD1({ storage }: Outcome): number {
  return (SHAPE.databases * CLOUDFLARE.d1Bytes) / 1e9 / storage.d1_gb_a_day;
}
