/** The simulation of the run that bench/at-once.ts plays. */
import { LIMITS } from "../../src/contract/limits.ts";
import { AccountModel, EndpointModel } from "../simulate/grantors.ts";
import { RunModel } from "../simulate/run-model.ts";
import { World } from "../simulate/world.ts";
import { type Shape, turnTimes } from "./held-model.ts";

/** Longer than the run takes. */
const MOST_MS = 4 * 3600_000;
const CALL_TIMEOUT_MS = 600_000;
/** Of two to four short turns. */
const TRAJECTORY_BYTES = 3000;

export function simulateAtOnce(shape: Shape): World {
  const { rollouts, turns } = shape;
  const turnMs = turnTimes(shape);
  const held: (() => void)[] = [];
  let [arrived, answers] = [0, false];
  const world = new World(
    {
      ...{ turns, turnMs, callTimeoutMs: CALL_TIMEOUT_MS, followed: true },
      ...{ perShard: LIMITS.rolloutsPerShard, trajectoryBytes: TRAJECTORY_BYTES },
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
  const of = { account: new AccountModel(world), endpoint: new EndpointModel(world, null), settings: "at once" };
  new RunModel(world, { rollouts, maxConcurrent: rollouts, ...of }).create();
  world.agenda.run(world.from + MOST_MS);
  return world;
}
