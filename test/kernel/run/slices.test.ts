/** Limits of every invocation: subrequests, rows, and the time of a run's next alarm. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import type { RolloutSpec, RunSpec } from "../../../src/kernel/messages/wire.ts";
import { FactsTable } from "../../../src/kernel/rollout/facts.ts";
import { RolloutObject } from "../../../src/kernel/rollout/object.ts";
import { RolloutStore } from "../../../src/kernel/rollout/store.ts";
import { nextRunAlarm, type RunClock, rowDueAt, rowEveryMs } from "../../../src/kernel/run/alarm.ts";
import { scoresMessages } from "../../../src/kernel/run/queues.ts";
import { inside } from "../platform.ts";

test("an invocation that exceeds its limit of subrequests is stopped, whatever their kind", async () => {
  const subrequests = new Subrequests(3);
  await subrequests.fetch(async () => "one");
  await subrequests.object(async () => "two");
  await subrequests.fetchAll(["three"], async (item) => item);
  await expect(subrequests.object(async () => "four")).rejects.toThrow(/more than 3 subrequests/);
});

test("a fan-out has at most six open connections, and returns results in order", async () => {
  const open = { now: 0, most: 0 };
  const items = Array.from({ length: 40 }, (_, index) => index);
  const results = await new Subrequests().fetchAll(items, async (item) => {
    open.now += 1;
    open.most = Math.max(open.most, open.now);
    await Promise.resolve();
    open.now -= 1;
    return item * 2;
  });
  expect(results).toEqual(items.map((item) => item * 2));
  expect(open.most).toBe(LIMITS.parallelFetches);
});

test("a seventh connection opened past the fan-out is refused, and a failed one frees its place", async () => {
  const subrequests = new Subrequests();
  const ends: (() => void)[] = [];
  const held = Array.from({ length: 6 }, () =>
    subrequests.fetch(() => new Promise<void>((resolve) => ends.push(resolve))),
  );
  await expect(subrequests.fetch(async () => 0)).rejects.toThrow(/more than 6 connections/);
  for (const end of ends) end();
  await Promise.all(held);
  await expect(subrequests.fetch(() => Promise.reject(new Error("cut")))).rejects.toThrow("cut");
  expect(await subrequests.fetch(async () => "free again")).toBe("free again");
});

const SPEC: RolloutSpec = {
  scope: { orgId: "org_1", projectId: "pj_1" },
  ...{ run_id: "run_1", rollout_id: "ro_1", host: 1, group: 0, slot: 0, attempt: 0 },
  ...{ example_id: 0, task_key: "key", row: {}, seed: 0 },
  environment: { id: "gsm8k", version: "1.0.0", digest: "sha256:00" },
  environment_args: {},
  ...{ model: "m", endpoint_id: "ep_1", sampling: {} },
  limits: { call_timeout_s: 600, max_retries: 2 },
};

function inStorage<T>(use: (sql: SqlStorage) => T): Promise<T> {
  const stub: DurableObjectStub = env.ROLLOUT.getByName(crypto.randomUUID());
  return inside(stub, RolloutObject, (_, { storage }) => use(storage.sql));
}

function specWith(text: string): RolloutSpec {
  return { ...SPEC, row: { text } };
}

// Three bytes a character; four bytes a pair of them, at both alignments of the cut.
const LONG_TEXTS = ["語".repeat(1_300_000), "😀".repeat(700_000), `x${"😀".repeat(700_000)}`];

test("a spec longer than a row is stored in rows within the limit, and read back the same", async () => {
  for (const text of LONG_TEXTS) {
    const { same, longest } = await inStorage((sql) => {
      new RolloutStore(new FactsTable(sql), "ro_1").begin(specWith(text));
      const rows = sql.exec("select max(length(cast(text as blob))) as bytes from facts").one();
      const read = new RolloutStore(new FactsTable(sql), "ro_1").spec();
      return { same: read?.row["text"] === text, longest: Number(rows["bytes"]) };
    });
    expect(same).toBe(true);
    expect(longest).toBeLessThanOrEqual(LIMITS.rowBytes);
  }
});

test("a shorter value that replaces a longer one is read without the longer one's tail", async () => {
  const read = await inStorage((sql) => {
    new RolloutStore(new FactsTable(sql), "ro_1").begin(specWith("a".repeat(1_500_000)));
    new RolloutStore(new FactsTable(sql), "ro_1").begin(specWith("short"));
    return new RolloutStore(new FactsTable(sql), "ro_1").spec();
  });
  expect(read).toEqual(specWith("short"));
});

const NOW = 1_000_000;
const SETTLED: RunClock = {
  now: NOW,
  askAt: null,
  notifyAt: null,
  releaseAt: null,
  rowStaleAt: null,
  rowTriedAt: NOW - 200,
  rowEveryMs: 1000,
  rowFailures: 0,
  unnotified: false,
  canDispatch: false,
  freeAt: null,
  deadlineAt: null,
  endpointAt: null,
  judgeAt: null,
  reclaimAt: null,
  trainingAt: null,
};

const ALARMS: [what: string, clock: Partial<RunClock>, at: number | null][] = [
  ["a settled, written and freed run has none", {}, null],
  ["a settled and written run only the one that frees", { freeAt: NOW + 5 }, NOW + 5],
  ["a run that waits none before its first deadline", { askAt: NOW + 60_000 }, NOW + 60_000],
  ["what is overdue is now, never the past", { askAt: 0 }, NOW],
  ["the endpoint is asked when its lease wants it", { endpointAt: NOW + 7 }, NOW + 7],
  ["rollouts that fit are dispatched now", { canDispatch: true, askAt: NOW + 9 }, NOW],
  ["rollouts to tell of a cancel are told now", { unnotified: true, askAt: NOW + 9 }, NOW],
  ["a row that is behind is written a second after the last", { rowStaleAt: NOW }, NOW + 800],
  ["a row of a long run waits longer", { rowStaleAt: NOW, rowEveryMs: 15_000 }, NOW + 14_800],
  ["and for what follows the first change", { rowStaleAt: NOW, rowTriedAt: 0, rowEveryMs: 15_000 }, NOW + 14_000],
  ["a change of status, or of a young run, does not", { rowStaleAt: NOW, rowTriedAt: 0 }, NOW],
  ["a row that could not be written waits twice as long", { rowStaleAt: NOW, rowFailures: 1 }, NOW + 1800],
  ["one that fails and fails waits a minute at most", { rowStaleAt: NOW, rowFailures: 40 }, NOW + 59_800],
];

test.each(ALARMS)("next alarm of a run: %s", (_what, clock, at) => {
  expect(nextRunAlarm({ ...SETTLED, ...clock })).toBe(at);
});

test.each([
  [0, 1000],
  [20_000, 1000],
  [100_000, 5000],
  [300_000, 15_000],
  [86_400_000, 15_000],
])("the row of a run that is %i ms old is written every %i ms", (age, every) => {
  expect(rowEveryMs(age)).toBe(every);
});

test("a current row is not written, however often a write failed before", () => {
  expect(rowDueAt({ ...SETTLED, rowFailures: 3 })).toBeNull();
});

test("scores may be computed side by side if they call no services: then the message says how many rollouts it has", () => {
  const spec = { whole_groups: true, rollouts_per_example: 4, run_id: "run_1" } as RunSpec;
  const membersOf = (needs?: readonly string[]) =>
    scoresMessages({ ...spec, ...(needs && { needs }) }, [1]).map(({ members }) => members);
  expect([membersOf([]), membersOf(["sql"])]).toEqual([[4], [4]]);
  expect([membersOf(["fetch"]), membersOf(["fetch:https://a.example"]), membersOf()]).toEqual(
    Array(3).fill([undefined]),
  );
});

test("a message to score whole groups needs no more trajectories than an invocation may read", () => {
  const spec = { whole_groups: true, rollouts_per_example: 64, run_id: "run_1" } as RunSpec;
  const scoringGroups = Array.from({ length: 20 }, (_, index) => index);
  const messages = scoresMessages(spec, scoringGroups);
  expect(messages.flatMap((message) => message.units)).toEqual(scoringGroups);
  for (const message of messages) {
    expect(message.units.length * 64).toBeLessThan(LIMITS.subrequests);
  }
});
