/** A report that no store can ever accept: its rollout still ends, once, with a report that can be stored. */
import { evictDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { RolloutStore } from "../../../src/kernel/rollout/store.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** A run of one rollout, whose object refuses the rollout's trajectory because of its content: it is too large. */
async function refusing(): Promise<string> {
  const model = script([{ fault: { kind: "hang" }, times: 1, reply: "\\boxed{4}" }]);
  const limits = { call_timeout_s: 1, max_retries: 1 };
  const asked = { environment: "gsm8k", dataset: questions(1), model, limits };
  const { id } = await platform.start(asked);
  await requestsOf(model, 1);
  await platform.inRun(id, (_, { storage }) => {
    storage.sql.exec(`create trigger too_large before update of digest on rollouts
      when new.digest is not null begin select raise(abort, 'too large'); end`);
  });
  return id;
}

async function expectEndedOnce(id: string): Promise<void> {
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run.counts).toMatchObject({ planned: 1, scored: 0, failed: { platform: 1 } });
  const [row, ...more] = await platform.results(id);
  expect(more).toEqual([]);
  expect(row).toMatchObject({ stop_condition: "has_error", turns: 1 });
  expect(row?.error?.message).toMatch(/^its result could not be stored: too large/);
  const ends = (await platform.events(id)).filter(({ event }) => event === "rollout.finished");
  expect(ends.length).toBe(1);
  await acknowledged(rolloutAt(id));
}

/** Waits until the rollout has noted that its run has the report. */
async function acknowledged(id: string): Promise<void> {
  const ask = () => platform.inRollout(id, (rollout) => rollout.ask());
  while ((await ask())?.state !== "answered") await platform.inRollout(id, (rollout) => rollout.alarm());
}

test("if a report's content is refused, its rollout ends as a platform failure, and the run ends", async () => {
  await expectEndedOnce(await refusing());
});

test("a kill after the smaller report, before the rollout has noted it, leaves one end", async () => {
  const id = await refusing();
  let notes = 0;
  const { acknowledge } = RolloutStore.prototype;
  vi.spyOn(RolloutStore.prototype, "acknowledge").mockImplementation(function (this: RolloutStore) {
    if (this.spec().run_id === id && ++notes === 1) throw new Error("killed here");
    acknowledge.call(this);
  });
  await platform.ended(id);
  await evictDurableObject(await platform.rolloutStub(rolloutAt(id)));
  await acknowledged(rolloutAt(id));
  expect(notes).toBe(2);
  await expectEndedOnce(id);
});

test("a scoring group whose scores are refused for their content ends unscored, and the others are scored", async () => {
  const model = script([{ fault: { kind: "hang" }, times: 1, reply: "\\boxed{4}" }]);
  const limits = { call_timeout_s: 1, max_retries: 1 };
  const dataset = questions(3);
  const asked = { environment: "gsm8k", dataset, model, limits, min_scored: 0 };
  const { id } = await platform.start(asked);
  await requestsOf(model, 3);
  await platform.inRun(id, (_, { storage }) => {
    storage.sql.exec(`create trigger too_large before update of scores on rollouts
      when old.group_index = 1 and new.reward is not null begin select raise(abort, 'too large'); end`);
  });
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run.counts).toMatchObject({ scored: 2, unscored: { scorer: 1 } });
  const { reward, scoring_errors } = await platform.rollout(rolloutAt(id, 1));
  expect(reward).toBe(null);
  expect(scoring_errors).toMatchObject([
    {
      function: "rubric",
      error: expect.stringMatching(/its scores could not be stored: too large/),
    },
  ]);
});
