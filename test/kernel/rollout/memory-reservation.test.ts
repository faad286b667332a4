/** Memory shared by the rollouts of a process: rollouts without memory wait, and hold none. */
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { PROCESS_SCHEDULER } from "../../../src/kernel/kit/fair-scheduler.ts";
import type { Reservation } from "../../../src/kernel/kit/fair-semaphore.ts";
import { WAIT } from "../../hang-limits.ts";
import { registerMarking } from "../marking.ts";
import { MEMORY } from "../memory-budget.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { GUESSES, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const HALF = MEMORY.rollouts.bytes.mostOfOne;

let platform: TestApi;
let held: Reservation[] = [];
beforeAll(async () => {
  registerMarking();
  platform = await openPlatform();
});

afterEach(() => {
  vi.restoreAllMocks();
  for (const reservation of held) reservation.leave();
  held = [];
});

/** Takes this much of what the test's organisation may hold. */
function hold(bytes: number): Reservation {
  const reservation = MEMORY.rollouts.bytes.take(platform.scope.orgId, Date.now(), bytes);
  if (reservation === null) throw new Error("the room is taken");
  held.push(reservation);
  return reservation;
}

/** The free memory: objects that other tests killed in this process hold theirs for a while. */
function free(): number {
  let [fits, tooMuch] = [0, MEMORY.total + 1];
  while (tooMuch - fits > 1) {
    const size = Math.floor((fits + tooMuch) / 2);
    const reservation = MEMORY.rollouts.bytes.take(platform.scope.orgId, Date.now(), size);
    reservation?.leave();
    if (reservation === null) tooMuch = size;
    else fits = size;
  }
  return fits;
}

test("a rollout without memory makes no call until there is some; rollouts of others continue", async () => {
  const reservation = hold(HALF);
  const model = script(RIGHT);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(7), model });
  const id = rolloutAt(run.id);
  const standing = () => platform.inRollout(id, ({ object }) => object.ask([id]));
  await vi.waitFor(async () => expect(await standing()).toMatchObject([{ state: "running" }]), WAIT);
  const others = await openPlatform();
  expect(
    (await others.finish({ environment: "gsm8k", dataset: questions(7), model: script(RIGHT) })).counts.scored,
  ).toBe(7);
  expect(await requestsOf(model)).toEqual([]);
  reservation.leave();
  expect((await platform.ended(run.id)).counts.scored).toBe(7);
  expect(await requestsOf(model)).toHaveLength(7);
});

test("a rollout that waits for memory can be cancelled like any other", async () => {
  const reservation = hold(HALF);
  const model = script(RIGHT);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(2), model });
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  reservation.leave();
  expect((await platform.ended(run.id)).counts).toMatchObject({ cancelled: { user: 2 } });
  expect(await requestsOf(model)).toEqual([]);
});

test("a rollout that outgrows the free memory returns what it has, and continues once it fits", async () => {
  // The rest of the organisation's memory is enough for its row and prompt, but not for its first turn.
  const reservation = hold((free() - 1600) / 2);
  const model = script(GUESSES);
  const run = await platform.start({
    environment: "guess-number",
    environment_args: { max: 3 },
    model,
    num_examples: 1,
    seed: 5,
  });
  await requestsOf(model, 1);
  const all = await vi.waitUntil(() => MEMORY.rollouts.bytes.take(platform.scope.orgId, Date.now(), 800), WAIT);
  expect(await requestsOf(model)).toHaveLength(1);
  all.leave();
  reservation.leave();
  const ended = await platform.ended(run.id);
  expect(ended.counts).toMatchObject({ scored: 1 });
  const { turns } = await platform.rollout(rolloutAt(run.id));
  expect(turns.length).toBeGreaterThan(1);
  expect(await requestsOf(model)).toHaveLength(turns.length);
});

test("rollouts that are scored together have a part each of what a group may have, and are truncated beyond it", async () => {
  const most = vi.spyOn(MEMORY, "mostCharacters").mockReturnValue(10);
  const asked = { environment: "ranked", dataset: questions(1), model: script(["123456"]), rollouts_per_example: 2 };
  const run = await platform.finish(asked);
  expect(new Set(most.mock.calls.flat())).toEqual(new Set([2]));
  const rollouts = await Promise.all([0, 1].map((slot) => platform.rollout(rolloutAt(run.id, 0, slot))));
  expect(rollouts.map(({ stop_condition }) => stop_condition)).toEqual(["max_size_reached", "max_size_reached"]);
});

test("a large rollout waits for its scheduling turn before it is read, called for and stored; a small one never does", async () => {
  const spends = vi.spyOn(PROCESS_SCHEDULER, "spend");
  const large = 150_000;
  const dataset = [{ question: "q".repeat(large), answer: "4" }, ...questions(1)];
  const run = await platform.finish({ environment: "gsm8k", dataset, model: script(RIGHT) });
  expect(run.counts.scored).toBe(2);
  // Half a step per character in memory, three times. The request's body counts one step per byte, and reading a row or
  // a trajectory as JSON counts two.
  const turns = spends.mock.calls.filter(([org, steps]) => {
    return org === platform.scope.orgId && steps >= large && steps < 2 * large;
  });
  expect(turns).toHaveLength(4);
});
