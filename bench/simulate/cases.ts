/** The cases of the simulation. Each is played until its load no longer changes, and counted for some minutes. */
import { LIMITS } from "../../src/contract/limits.ts";
import { seededRandom } from "../../src/contract/random.ts";
import { FleetModel } from "./fleet-model.ts";
import { AccountModel, EndpointModel } from "./grantors.ts";
import { RunModel, type RunOf } from "./run-model.ts";
import { type Work, World } from "./world.ts";

const TURNS = 10;
const TURN_MS = 5000;
const SIGMA = 0.5;
const CALL_TIMEOUT_MS = 600_000;
const TRAJECTORY_BYTES = 30_000;
const SECOND_MS = 1000;
const DAY_S = 86_400;

export interface Options {
  readonly seed: number;
  readonly objectsPerIsolate: number;
  readonly trajectoryBytes: number;
  /** The model's server does not stream, so fewer rollouts share an object. */
  readonly repliesWhole: boolean;
}

export const DEFAULTS: Options = {
  seed: 0,
  objectsPerIsolate: 1,
  trajectoryBytes: TRAJECTORY_BYTES,
  repliesWhole: false,
};

/** What a case's figure counts, in its own unit. */
export interface Load {
  readonly figure: number;
  readonly unit: string;
}

export interface Case extends Load {
  readonly name: string;
  readonly warmUpS: number;
  readonly countedS: number;
  /** Rollouts of one run, for the storage of its object. */
  readonly rolloutsPerRun: number;
  readonly maxConcurrent: number;
  readonly followed: boolean;
  readonly begin: (world: World) => void;
}

/** A run on a fleet is counted for a shorter time, since each of its renewals is played. */
const COUNTED_ON_FLEET_S = 100;
const RUN_OF_MILLION = { rollouts: LIMITS.rolloutsPerRun, warmUpS: 300, countedS: 300 } as const;
const TENANTS = 1000;
const TENANT_AT_ONCE = 128;
const USUAL_ROLLOUTS = 1000;
const ROLLOUTS_A_DAY = 100_000_000;
const ORGANIZATIONS = 100;

function millionOf(maxConcurrent: number, onFleet = false): Case {
  const { rollouts, warmUpS, ...counted } = RUN_OF_MILLION;
  const countedS = onFleet ? COUNTED_ON_FLEET_S : counted.countedS;
  const what = `one run of ${rollouts.toLocaleString("en")} rollouts`;
  return {
    ...{ name: `${what}, ${maxConcurrent.toLocaleString("en")} at once${onFleet ? ", on one fleet" : ""}` },
    ...{ figure: maxConcurrent, unit: "rollouts at once in a run", followed: true },
    ...{ warmUpS, countedS, rolloutsPerRun: rollouts, maxConcurrent },
    begin: (world) => new RunModel(world, { rollouts, maxConcurrent, ...tenantOf(world, onFleet) }).create(),
  };
}

/**
 * Runs of one tenant follow each other; the first ones begin within a minute. Counted is as long as a run takes, so that
 * the beginnings of runs are counted, and what isolates read every five minutes.
 */
const TENANTS_CASE: Case = {
  name: `${TENANTS.toLocaleString("en")} tenants with ${TENANT_AT_ONCE} rollouts at once each`,
  ...{ figure: TENANTS, unit: "tenants", followed: true },
  ...{ warmUpS: 100, countedS: 400 },
  ...{ rolloutsPerRun: USUAL_ROLLOUTS, maxConcurrent: TENANT_AT_ONCE },
  begin: (world) => {
    const work = { rollouts: USUAL_ROLLOUTS, maxConcurrent: TENANT_AT_ONCE };
    for (let at = 0; at < TENANTS; at += 1) {
      const of = tenantOf(world, at === 0);
      const next = () => new RunModel(world, { ...work, ...of, onSettled: next }).create();
      world.agenda.in((at * 60 * SECOND_MS) / TENANTS, next);
    }
  },
};

/** A run begins after equal times, so many a day. */
const DAY_CASE: Case = {
  name: `${ROLLOUTS_A_DAY / 1e6} M rollouts a day`,
  ...{ figure: ROLLOUTS_A_DAY / 1e6, unit: "M rollouts a day", followed: false },
  ...{ warmUpS: 440, countedS: 80 },
  ...{ rolloutsPerRun: USUAL_ROLLOUTS, maxConcurrent: TENANT_AT_ONCE },
  begin: (world) => {
    const everyMs = (DAY_S * SECOND_MS * USUAL_ROLLOUTS) / ROLLOUTS_A_DAY;
    const tenants = Array.from({ length: ORGANIZATIONS }, (_, at) => tenantOf(world, at === 0));
    const work = { rollouts: USUAL_ROLLOUTS, maxConcurrent: TENANT_AT_ONCE };
    const next = (at: number): void => {
      const tenant = tenants[at % ORGANIZATIONS];
      if (tenant !== undefined) new RunModel(world, { ...work, ...tenant }).create();
      world.agenda.in(everyMs, () => next(at + 1));
    };
    next(0);
  },
};

/** By the letters of docs/operations.md. (a-accepted) is the most that the platform accepts of (a). */
export const CASES: Readonly<Record<string, Case>> = {
  "a-10000": millionOf(10_000),
  "a-accepted": millionOf(LIMITS.maxConcurrent),
  a: millionOf(20_000),
  "a-fleet": millionOf(20_000, true),
  b: TENANTS_CASE,
  c: DAY_CASE,
};

/** `onFleet`: its calls go to a fleet. One of many projects is enough, since each has a fleet of its own. */
function tenantOf(world: World, onFleet: boolean): Pick<RunOf, "account" | "endpoint" | "fleet"> {
  const endpoint = new EndpointModel(world, null);
  return { account: new AccountModel(world), endpoint, ...(onFleet && { fleet: new FleetModel(world) }) };
}

/** Plays a case. The same options give the same counts. */
export function play(of: Case, { seed, repliesWhole, ...options }: Options): World {
  const random = seededRandom("simulate", of.name, seed);
  const work: Work = {
    turns: TURNS,
    turnMs: () => TURN_MS * Math.exp(SIGMA * normal(random) - SIGMA ** 2 / 2),
    callTimeoutMs: CALL_TIMEOUT_MS,
    perShard: repliesWhole ? LIMITS.parallelFetches : LIMITS.rolloutsPerShard,
    ...{ ...options, followed: of.followed },
  };
  const world = new World(work, of.warmUpS * SECOND_MS);
  of.begin(world);
  world.agenda.run(world.from + of.countedS * SECOND_MS);
  return world;
}

/** By Box and Muller. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
