/** The simulation of the run that bench/at-once.ts plays. */
import { LIMITS } from "../../src/contract/limits.ts";
import { MESSAGES_LOCAL } from "../../src/kernel/account/leases.ts";
import { AccountModel, EndpointModel } from "../simulate/grantors.ts";
import { RunModel } from "../simulate/run-model.ts";
import { World } from "../simulate/world.ts";
import { type Shape, turnTimes } from "./shape.ts";

/** Longer than the run takes. */
const MOST_MS = 4 * 3600_000;
const CALL_TIMEOUT_MS = 600_000;
/** Of two to four short turns. */
const TRAJECTORY_BYTES = 3000;

/** `requestMs`: of a request to the process that does everything. D1, R2 and queues are objects of that process, too. */
export function simulateAtOnce(shape: Shape, requestMs: number): World {
  const { rollouts, turns } = shape;
  const turnMs = turnTimes(shape);
  const held: (() => void)[] = [];
  let [arrived, answers] = [0, false];
  const world = new World(
    {
      ...{ turns, turnMs, callTimeoutMs: CALL_TIMEOUT_MS, followed: true },
      ...{ perShard: LIMITS.rolloutsPerShard, trajectoryBytes: TRAJECTORY_BYTES },
      latency: { request: requestMs, r2Read: requestMs, r2Write: requestMs, d1: 2 * requestMs, queue: requestMs },
      // Locally all objects share one.
      objectsPerIsolate: Number.POSITIVE_INFINITY,
      answer: (agenda, answered) => {
        arrived += 1;
        if (answers) {
          agenda.in(turnMs(), answered);
          return;
        }
        held.push(answered);
        if (arrived < rollouts) return;
        answers = true;
        for (const each of held.splice(0)) agenda.in(turnMs(), each);
      },
    },
    0,
  );
  const of = { account: new AccountModel(world, MESSAGES_LOCAL), endpoint: new EndpointModel(world, null), settings: "at once" };
  new RunModel(world, { rollouts, maxConcurrent: rollouts, ...of }).create();
  world.agenda.run(world.from + MOST_MS);
  return world;
}
