/** Judges that answer slowly, and how few places in the queues they get. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { Subrequests } from "../../../../src/kernel/kit/subrequests.ts";
import type { JudgingScoringGroup } from "../../../../src/kernel/messages/judge-outcome.ts";
import { PATIENCE_MS } from "../../../../src/kernel/run/judging/pace.ts";
import { judgementQueue } from "../../../../src/kernel/run/queues.ts";
import { judgeScoringGroup } from "../../../../src/kernel/scoring/consume-judgements.ts";
import { judgement, registerEssays } from "../../essays.ts";
import { interposed } from "../../hand-made.ts";
import { essayRun, owing } from "../../owing-scoring-group.ts";
import { expectLaw, openPlatform, requestsOf, type TestApi } from "../../platform.ts";
import { script } from "../../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerEssays();
  platform = await openPlatform();
  const bench = { name: "bench", base_url: env.MODEL_URL, probe: false };
  expect((await platform.post("/v1/endpoints", bench)).status).toBe(201);
});

const GOOD = judgement("good");
const HANGS = { fault: { kind: "hang" } } as const;
const FIRST = { id: "message", attempt: 1 };

/** The scoring group as its consumer gets it, but with a shorter patience. */
async function impatient(call: () => Promise<unknown>): Promise<unknown> {
  const taken = (await call()) as JudgingScoringGroup | null;
  return taken?.patience_ms === PATIENCE_MS ? { ...taken, patience_ms: 50 } : taken;
}

test("a call to a judge that does not answer in time is aborted, does not count as a try, and is repeated with the same key", async () => {
  const judge = script([{ ...HANGS, times: 1, reply: GOOD }]);
  const { id } = await owing(platform, script([GOOD]), judge);
  const RUN = interposed(env.RUN, "takeJudging", impatient);
  const message = { kind: "judgement", scope: platform.scope, run_id: id, unit: 1, members: 1 } as const;
  await judgeScoringGroup({ ...env, RUN }, message, FIRST, new Subrequests());
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run.counts).toMatchObject({ scored: 1, unscored: {} });
  expect(run.report.usage.judge).toMatchObject({ calls: 1 });
  const keys = (await requestsOf(judge)).map(({ idempotency_key }) => idempotency_key);
  expect(keys).toEqual([keys[0], keys[0]]);
});

test("after an aborted call its scoring group, and each later one, goes to the queue of silent judges, with the full time", async () => {
  const { within, judgements } = await owing(platform, script([GOOD]));
  const judging = await within(async (run) => {
    const taken = run.takeJudging(1, FIRST);
    const { claim = 0, endpoint_id = "", patience_ms } = (await taken) ?? {};
    expect(patience_ms).toBe(PATIENCE_MS);
    run.requestJudgements([{ unit: 1, endpoint_id, calls: 1, claim, silent: true }]);
    await run.alarm();
    const late = await run.takeJudging(1, { id: "sent before", attempt: 1 });
    await run.alarm();
    return { late, again: await run.takeJudging(1, { id: "sent after", attempt: 1, pace: "silent" }) };
  });
  expect(judgements.given[0]).not.toHaveProperty("pace");
  // A message that was sent to a queue of quick judges gets no claim there any more.
  expect(judging.late).toBeNull();
  expect(judging.again?.patience_ms).toBeUndefined();
  expect(judgements.given).toMatchObject([{ unit: 1 }, { pace: "silent" }, { pace: "silent" }]);
});

test.each([
  ["took longer than 3 s is slow, so that quick judges of others do not wait for its next units", 3001, "slow"],
  ["answered within 3 s goes on among those that answer soon", 3000, undefined],
])("a judge that %s", async (_, took_ms, pace) => {
  const { within, judgements } = await owing(platform, script([GOOD]));
  await within(async (run) => {
    const { claim = 0, endpoint_id = "" } = (await run.takeJudging(1, FIRST)) ?? {};
    const said = { kind: "given", value: "good", reason: "because", usage: null, cached: false } as const;
    const outcome = { ...said, took_ms, recorded: { calls: 0, replies: 0 } };
    const of = { key: "key", judge: "default", pass: 0, rollout_id: null, left_out: 0, seed: null };
    run.judged(1, claim, [{ ...of, outcome }]);
    run.requestJudgements([{ unit: 1, endpoint_id, calls: 1, claim }]);
    await run.alarm();
  });
  expect(judgements.given.at(-1)).toEqual(expect.objectContaining({ unit: 1, ...(pace && { pace }) }));
  expect(judgements.given.some((message) => JSON.stringify(message).includes("slow"))).toBe(pace === "slow");
});

test("slow judges have four queues and silent ones have one, and no scoring group of a quick judge is sent there", () => {
  const queueOf = (scoringGroup: number, pace?: "slow" | "silent") =>
    judgementQueue(env, { run_id: "r", unit: scoringGroup, ...(pace && { pace }) });
  const soon = new Set([0, 1, 2, 3].map((scoringGroup) => queueOf(scoringGroup)));
  expect(soon.size).toBe(4);
  const late = new Set(
    [0, 1, 2, 3].flatMap((scoringGroup) => [queueOf(scoringGroup, "slow"), queueOf(scoringGroup, "silent")]),
  );
  expect(late.size).toBe(5);
  expect([...late].filter((queue) => soon.has(queue))).toEqual([]);
});

test("until a judge has answered its run sends it one scoring group; then as many as its lease allows", async () => {
  const judge = script([HANGS]);
  const { id } = await platform.start(essayRun(judge, 5));
  await requestsOf(judge, 1);
  const staged = () =>
    platform.inRun(id, (_, { storage }) =>
      storage.sql.exec<{ n: number }>("select count(*) as n from judging where stage != 'waiting'").one(),
    );
  expect(await staged()).toEqual({ n: 1 });
  await platform.post(`/v1/runs/${id}/cancel`, {});
  const healthy = await platform.finish(essayRun(script([GOOD]), 5, { judge_cache: false }));
  expect(healthy.counts).toMatchObject({ scored: 5 });
});
