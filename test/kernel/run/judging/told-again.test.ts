/**
 * A call to a judge is counted once, however often and by whichever consumer its outcome is reported; and what a
 * rollout shows of its judgements does not depend on which of them was reported first.
 */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { Subrequests } from "../../../../src/kernel/kit/subrequests.ts";
import type { AskOutcome } from "../../../../src/kernel/messages/judge-outcome.ts";
import { type JudgementEntry, JudgingStore } from "../../../../src/kernel/run/judging-store.ts";
import { judgeScoringGroup } from "../../../../src/kernel/scoring/consume-judgements.ts";
import { judgement, registerEssays } from "../../essays.ts";
import { interposed } from "../../hand-made.ts";
import { owing, takenTwice } from "../../owing-scoring-group.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../../platform.ts";
import { script } from "../../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerEssays();
  platform = await openPlatform();
  const bench = { name: "bench", base_url: env.MODEL_URL, probe: false };
  expect((await platform.post("/v1/endpoints", bench)).status).toBe(201);
});

const GOOD = judgement("good");

test("a reply that is not a judgement, whose acknowledgement was lost, counts its tokens and one try once", async () => {
  const usage = { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42 };
  const odd = { content: "It reads splendidly.", usage };
  const judge = script([odd, { content: GOOD, usage }]);
  const { id, asked } = await owing(platform, judge);
  let told = 0;
  const RUN = interposed(env.RUN, "judged", async (call) => {
    const reply = await call();
    told += 1;
    if (told === 1) throw new Error("the reply was lost");
    return reply;
  });
  const message = { kind: "judgement", scope: platform.scope, run_id: id, unit: 1 } as const;
  await judgeScoringGroup(
    { ...env, RUN },
    { ...message, members: 1 },
    { id: "message", attempt: 1 },
    new Subrequests(),
  );
  expect(told).toBe(2);
  expect(await requestsOf(judge)).toHaveLength(asked + 1);
  expect(await judgementsOf(id)).toMatchObject([
    { calls: 1, tries: 1, replies: 1, prompt_tokens: 40, completion_tokens: 2, verdict: null },
  ]);
});

test("the outcome of a call is counted once: if reported again, late, or after another consumer took the claim", async () => {
  const { id, within } = await owing(platform, script([GOOD]));
  const [first, second] = (await takenTwice(platform, id, within)).map(({ claim }) => claim);
  const usage = { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42 };
  const ask = { key: "k", judge: "default", pass: 0, rollout_id: null, left_out: 0, seed: null };
  const failed = { kind: "failed", error: "odd", retryable: true, retry_after_ms: null } as const;
  const odd = { ...failed, replied: true, usage } as const;
  const silent = { ...failed, usage: null } as const;
  const refused = { ...silent, free: true } as const;
  const given = { kind: "given", value: "good", reason: null, usage } as const;
  const tell = async (claim: number | undefined, outcome: AskOutcome, calls: number, replies: number) => {
    await within((run) =>
      run.judged(1, claim ?? 0, [{ ...ask, outcome: { ...outcome, recorded: { calls, replies } } }]),
    );
    const [row] = await judgementsOf(id);
    return [row?.calls, row?.tries, row?.replies, row?.prompt_tokens, row?.verdict != null];
  };
  // Its key was replaced meanwhile.
  for (const claim of [first, first, second]) {
    expect(await tell(claim, refused, 0, 0)).toEqual([1, 0, 0, 0, false]);
  }
  // No reply.
  for (const claim of [second, second, first]) {
    expect(await tell(claim, silent, 1, 0)).toEqual([2, 1, 0, 0, false]);
  }
  // A reply that is not a judgement, to a call made by both claims; the earlier claim has not noticed the silence.
  for (const [claim, calls] of [
    [second, 2],
    [second, 2],
    [first, 1],
  ] as const) {
    expect(await tell(claim, odd, calls, 0)).toEqual([3, 2, 1, 40, false]);
  }
  expect(await tell(first, given, 1, 0)).toEqual([3, 2, 1, 40, false]);
  // A judgement is accepted although the other claim's call had no reply.
  expect(await tell(second, refused, 3, 1)).toEqual([4, 2, 1, 40, false]);
  for (const claim of [first, first, second]) {
    expect(await tell(claim, given, 3, 1)).toEqual([5, 2, 1, 80, true]);
  }
});

test("the judgements of a rollout have one order, whichever call was answered first", async () => {
  const { id, within } = await owing(platform, script([GOOD]));
  const claimed = await within((run) => run.takeJudging(1, { id: "message", attempt: 1 }));
  const given = { kind: "given", value: "good", reason: null, usage: null } as const;
  const ask = { rollout_id: rolloutAt(id), left_out: 0, seed: null };
  const answers = [
    ["d", "strict", 0],
    ["a", "default", 1],
    ["c", "default", 0],
    ["b", "default", 0],
  ] as const;
  for (const [key, judge, pass] of answers) {
    const outcome = { ...given, recorded: { calls: 0, replies: 0 } };
    await within((run) => run.judged(1, claimed?.claim ?? 0, [{ ...ask, key, judge, pass, outcome }]));
  }
  const taken = await platform.inRun(id, (_, { storage }) =>
    new JudgingStore(storage.sql).takeJudgements(1, rolloutAt(id)),
  );
  expect(taken.map(({ key, judge, pass }) => [key, judge, pass])).toEqual([
    ["b", "default", 0],
    ["c", "default", 0],
    ["a", "default", 1],
    ["d", "strict", 0],
  ]);
});

/** The stored judgements of the scoring group. */
function judgementsOf(id: string): Promise<JudgementEntry[]> {
  return platform.inRun(id, (_, { storage }) =>
    storage.sql.exec<JudgementEntry>("select * from verdicts where unit = 1").toArray(),
  );
}
