/** The simulation of the run that bench/at-once.ts plays. */
import { LIMITS } from "../../src/contract/limits.ts";
import { MESSAGES_LOCAL } from "../../src/kernel/account/leases.ts";
import { AccountModel, EndpointModel } from "../simulate/grantors.ts";
import { RunModel } from "../simulate/run-model.ts";
import { World } from "../simulate/world.ts";
import { type Shape, turnTimes } from "./shape.ts";

/** Longer than the run takes. */
const MOST_MS = 4 * 3600_000;
/** A request takes from so long to so long; halved so often. */
const [REQUEST_MS, STEPS] = [[1, 2000], 10] as const;
const CALL_TIMEOUT_MS = 600_000;
/** Of two to four short turns. */
const TRAJECTORY_BYTES = 3000;

/** Milliseconds of the run that was played. */
export interface Pace {
  /** From its begin until all rollouts were in flight. */
  readonly filledAfterMs: number;
  /** From then to its end. */
  readonly endedAfterMs: number;
  /** Of a read of D1 by an object that plays rollouts. */
  readonly d1Ms: number;
  /** Of a request when all rollouts are in flight, and nothing starts any more. */
  readonly reportMs: number;
}

/**
 * Turns, and requests while rollouts start, take as long as they must have taken where they were played, so that both
 * runs take as long.
 */
export function simulateAtOnce(shape: Shape, { filledAfterMs, endedAfterMs, ...given }: Pace): World {
  let [least, most]: [number, number] = [...REQUEST_MS];
  for (let step = 0; step < STEPS; step += 1) {
    const middle = (least + most) / 2;
    if (simulate(shape, { ...given, requestMs: middle }).filledAfterMs < filledAfterMs) least = middle;
    else most = middle;
  }
  const pace = { ...given, requestMs: least };
  const first = simulate(shape, pace);
  return simulate({ ...shape, turnMs: (shape.turnMs * endedAfterMs) / first.endedAfterMs }, pace).world;
}

/** `requestMs`: of a request until all rollouts are in flight, to the process that does everything. */
function simulate(
  shape: Shape,
  { requestMs, reportMs, d1Ms }: Pick<Pace, "reportMs" | "d1Ms"> & { readonly requestMs: number },
) {
  const { rollouts, turns } = shape;
  const turnMs = turnTimes(shape);
  const held: (() => void)[] = [];
  const latency = latencyOf(requestMs, d1Ms);
  let [arrived, fullAt, settledAt] = [0, 0, 0];
  const world = new World(
    {
      ...{ turns, turnMs, callTimeoutMs: CALL_TIMEOUT_MS, followed: true },
      ...{ perShard: LIMITS.rolloutsPerShard, trajectoryBytes: TRAJECTORY_BYTES },
      latency,
      // Locally all objects share one.
      objectsPerIsolate: Number.POSITIVE_INFINITY,
      answer: (agenda, answered) => {
        arrived += 1;
        if (fullAt > 0) {
          agenda.in(turnMs(), answered);
          return;
        }
        held.push(answered);
        if (arrived < rollouts) return;
        fullAt = agenda.now;
        Object.assign(latency, latencyOf(reportMs, d1Ms));
        for (const each of held.splice(0)) agenda.in(turnMs(), each);
      },
    },
    0,
  );
  const of = {
    account: new AccountModel(world, MESSAGES_LOCAL),
    endpoint: new EndpointModel(world, null),
    settings: "at once",
  };
  const onSettled = () => {
    settledAt = world.agenda.now;
  };
  new RunModel(world, { rollouts, maxConcurrent: rollouts, ...of, onSettled }).create();
  world.agenda.run(world.from + MOST_MS);
  return { world, filledAfterMs: fullAt - world.from, endedAfterMs: settledAt - fullAt };
}

/** R2 and queues are objects of the local platform, too. */
function latencyOf(request: number, d1: number) {
  return { request, r2Read: request, r2Write: request, queue: request, d1 };
}
