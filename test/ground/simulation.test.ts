/** `npm run simulate` gives the same figures each time, loses no rollout, and docs/operations.md has its figures. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { shareObjects } from "../../bench/sharing.ts";
import { Agenda } from "../../bench/simulate/agenda.ts";
import { CASES, type Case, DEFAULTS, play } from "../../bench/simulate/cases.ts";
import { FleetModel } from "../../bench/simulate/fleet-model.ts";
import { AccountModel, EndpointModel } from "../../bench/simulate/grantors.ts";
import { outcomeOf } from "../../bench/simulate/outcome.ts";
import { QueueModel } from "../../bench/simulate/queue-model.ts";
import { RunModel } from "../../bench/simulate/run-model.ts";
import { summaryTable } from "../../bench/simulate/text.ts";
import { Traffic } from "../../bench/simulate/traffic.ts";
import { COMPUTES, partOfScores, partOfStarts } from "../../src/kernel/service/side-by-side.ts";

const runs: RunModel[] = [];

/** Two runs of 300 rollouts share an endpoint that takes 40. */
const SMALL: Case = {
  ...{ name: "small", figure: 2, unit: "runs", followed: true, warmUpS: 0, countedS: 3600 },
  ...{ rolloutsPerRun: 300, maxConcurrent: 30 },
  begin: (world) => {
    const of = { account: new AccountModel(world), endpoint: new EndpointModel(world, 40) };
    for (let at = 0; at < 2; at += 1) {
      const run = new RunModel(world, { rollouts: 300, maxConcurrent: 30, ...of });
      runs.push(run);
      run.create();
    }
  },
};

test.each([30_000, 60_000])("every rollout ends once, with trajectories of %d bytes", (trajectoryBytes) => {
  const world = play(SMALL, { ...DEFAULTS, trajectoryBytes });
  expect(runs.splice(0).map(({ finished, running }) => ({ finished, running }))).toEqual([
    { finished: 300, running: 0 },
    { finished: 300, running: 0 },
  ]);
  expect([world.turns, world.traffic.counted("rollouts")]).toEqual([6000, 600]);
});

test("on a fleet, every rollout ends once, and its object gets fewer requests than there are turns", () => {
  const begin: Case["begin"] = (world) => {
    const of = { account: new AccountModel(world), endpoint: new EndpointModel(world, null), settings: "fleet" };
    const run = new RunModel(world, { rollouts: 300, maxConcurrent: 120, fleet: new FleetModel(world), ...of });
    runs.push(run);
    run.create();
  };
  const world = play({ ...SMALL, begin }, DEFAULTS);
  expect(runs.splice(0).map(({ finished, running }) => ({ finished, running }))).toEqual([
    { finished: 300, running: 0 },
  ]);
  expect(world.turns).toBe(3000);
  expect(world.traffic.sum("fleet")).toBeLessThan(3000);
});

test("the same seed gives the same figures, and another seed gives others", () => {
  const [first, again, other] = [0, 0, 1].map((seed) => outcomeOf(SMALL, play(SMALL, { ...DEFAULTS, seed })));
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
});

test.each([
  { what: "small starts at once, up to six", queue: "rollout-groups", part: partOfStarts(2), ms: 200, count: 10 },
  { what: "large starts one after another", queue: "rollout-groups", part: partOfStarts(25), ms: 1000, count: 10 },
  { what: "few scores at once, up to six", queue: "rollout-scores-1", part: partOfScores(2), ms: 200, count: 10 },
  { what: "segments one after another", queue: "run-segments", part: COMPUTES, ms: 200, count: 2 },
])("a consumer handles $what, as the code that runs, and works from the begin of its batch to the end", (of) => {
  const agenda = new Agenda(0);
  const traffic = new Traffic(0);
  const queue = new QueueModel(of.queue, agenda, traffic);
  const message = { part: of.part, workMs: 100, begin: () => undefined, end: () => undefined };
  queue.send(Array.from({ length: of.count }, () => message));
  agenda.run(10_000);
  const counted = [`handled ${of.queue}`, `batches ${of.queue}`, `consumer ms ${of.queue}`];
  expect(counted.map((name) => traffic.counted(name))).toEqual([of.count, 1, of.ms]);
  expect(queue.msInFullBatches()).toBeCloseTo(of.ms / of.count);
});

/** One run as that of docs/cost.md, but for the length of a turn. */
const BILLED: Case = {
  ...SMALL,
  ...{ name: "billed", followed: false, rolloutsPerRun: 1000, maxConcurrent: 128 },
  begin: (world) => {
    const of = { account: new AccountModel(world), endpoint: new EndpointModel(world, null) };
    new RunModel(world, { rollouts: 1000, maxConcurrent: 128, ...of }).create();
  },
};

test("rollouts share objects, report and start as in the simulation behind docs/cost.md, within a tenth", () => {
  const { traffic, work } = play(BILLED, DEFAULTS);
  const { turns, perShard } = work;
  const turnS = () => work.turnMs() / 1000;
  const shared = shareObjects({ rollouts: 1000, maxConcurrent: 128, callTimeoutS: 600, turns, perShard, turnS });
  const within = (counted: number, expected: number) => {
    expect(Math.abs(counted / expected - 1), `${counted} and ${expected}`).toBeLessThan(0.1);
  };
  within(traffic.counted("player ms") / 1000, shared.objectS);
  within(traffic.sum("rollout"), shared.starts + shared.asks + shared.alarms);
  const messages = traffic.names("messages rollout-groups").map((name) => traffic.counted(name));
  within(Math.max(...messages), shared.dispatches.length);
  // All of a run's messages go to one queue.
  expect(messages).toHaveLength(1);
});

test("docs/operations.md has the figures of the smallest case", () => {
  const { "a-10000": of } = CASES;
  if (of === undefined) throw new Error("no such case");
  const [, , row] = summaryTable({ "a-10000": outcomeOf(of, play(of, DEFAULTS)) }).split("\n");
  const page = readFileSync(join(import.meta.dirname, "../../docs/operations.md"), "utf8");
  expect(page).toContain(row);
});
