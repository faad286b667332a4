/** The suite can fail: each rule sees what it is there to see. */
import { expect, test } from "vitest";
import type { Judgement } from "../../src/core/judgement.ts";
import type { ResultRow, RunView } from "../../src/core/run.ts";
import type { Account } from "./account.ts";
import { violationsOf } from "./check.ts";
import { finishedRun } from "./finished-run.ts";

const DEATH = {
  victim: "group",
  after: 1000,
  before: 1010,
  in_flight: 12,
  ready_at: 1500,
  recovery_ms: 400,
} as const;

/** Two rollouts of two turns; workerd died once, with one call in flight. */
function account(): Account {
  return finishedRun([DEATH]);
}

function rules(changed: Account): string[] {
  return violationsOf(changed).map(({ rule }) => rule);
}

function told(changes: { run?: Partial<RunView>; results?: readonly ResultRow[] }): Account {
  const good = account();
  const { run, results } = good.told;
  return {
    ...good,
    told: { ...good.told, run: { ...run, ...changes.run }, results: changes.results ?? results },
  };
}

function call(key: string, times: readonly [at: number, ended: "answered" | "fault" | "open"][]) {
  const good = account();
  const known = good.calls.get(key);
  if (known === undefined) throw new Error(`no call ${key}`);
  const requests = times.map(([at, ended]) => ({ at, ended }));
  return { ...good, calls: new Map(good.calls).set(key, { ...known, requests }) };
}

test("a run that lost nothing and doubled nothing violates nothing", () => {
  expect(violationsOf(account())).toEqual([]);
});

test("a run that does not end, or whose counts do not add up, is seen", () => {
  expect(rules(told({ run: { finished_at: null } }))).toEqual(["ended"]);
  const { counts } = account().told.run;
  expect(rules(told({ run: { counts: { ...counts, scored: 1 } } }))).toEqual(["accounting"]);
});

test("what the audit finds is seen, and a D1 that lacks a rollout", () => {
  const { told: good, ...rest } = account();
  const violations = [{ rule: "r2_has_every_object" as const, detail: "one is missing" }];
  const found = { ...good.audit, holds: false, violations };
  expect(rules({ ...rest, told: { ...good, audit: found } })).toEqual(["audit"]);
  const d1 = { ...good.audit.sources.d1, rows: 1 };
  const behind = { ...good.audit, sources: { ...good.audit.sources, d1 } };
  expect(rules({ ...rest, told: { ...good, audit: behind } })).toEqual(["audit"]);
});

test("a rollout that is lost, doubled or unknown is seen", () => {
  const [first, second] = account().told.results;
  if (first === undefined || second === undefined) throw new Error("two results");
  expect(rules(told({ results: [first] }))).toContain("rollouts");
  expect(rules(told({ results: [first, second, second] }))).toContain("rollouts");
  expect(rules(told({ results: [first, { ...second, rollout_id: "other" }] }))).toContain(
    "rollouts",
  );
});

test("another reward, another message or another outcome than the calm run's is seen", () => {
  const [first, second] = account().told.results;
  if (first === undefined || second === undefined) throw new Error("two results");
  for (const changes of [
    { reward: 0 },
    { completion: [] },
    { outcome: "failed", reason: "platform" } as const,
  ]) {
    expect(rules(told({ results: [{ ...first, ...changes }, second] }))).toEqual(["content"]);
  }
  const cutOff = { outcome: "failed", reason: "tool_outcome_unknown" } as const;
  const results = [{ ...first, ...cutOff }, second];
  expect(rules(told({ results }))).toEqual([]);
  expect(rules({ ...told({ results }), deaths: [] })).toContain("content");
});

test("a call sent again is seen, unless it failed, its sender died or its deadline passed", () => {
  expect(
    rules(
      call("a:1", [
        [20, "answered"],
        [30, "answered"],
      ]),
    ),
  ).toEqual(["sampled_again"]);
  expect(
    rules(
      call("a:1", [
        [20, "fault"],
        [30, "answered"],
      ]),
    ),
  ).toEqual([]);
  expect(
    rules(
      call("a:1", [
        [990, "answered"],
        [1500, "answered"],
      ]),
    ),
  ).toEqual([]);
  expect(
    rules(
      call("a:1", [
        [1200, "open"],
        [6300, "answered"],
      ]),
    ),
  ).toEqual([]);
  const twice = [
    [990, "answered"],
    [1500, "answered"],
    [1600, "answered"],
  ] as const;
  expect(
    rules(
      call(
        "a:1",
        twice.map(([at, ended]) => [at, ended]),
      ),
    ),
  ).toEqual(["sampled_again"]);
});

test("a turn asked for after a later one is seen, also across a kill", () => {
  expect(
    rules(
      call("a:0", [
        [10, "answered"],
        [1500, "answered"],
      ]),
    ),
  ).toEqual(["turn_order"]);
});

/** The run of two rollouts, and of a judge that was asked of each. */
function judged(changes: { asked?: readonly string[]; verdicts?: readonly Judgement[] } = {}) {
  const good = account();
  const { asked = ["first", "second"], verdicts = asked.map((key) => verdictOf(key)) } = changes;
  const usage = { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 };
  const judge_calls = new Map(
    asked.map((rollout, index) => {
      const requests = [{ at: 20 + index, ended: "answered" as const }];
      return [`run:judge:0:${rollout}:0`, { rollout, turn: 0, requests, usage, changed: false }];
    }),
  );
  const { report } = good.told.run;
  const total_tokens = verdicts.reduce((sum, verdict) => sum + verdict.usage.total_tokens, 0);
  const judge = { ...usage, total_tokens, calls: verdicts.length };
  const run = { ...good.told.run, report: { ...report, usage: { ...report.usage, judge } } };
  return { ...good, judge_calls, told: { ...good.told, run, judgements: verdicts } };
}

function verdictOf(key: string, verdict: string | null = "well"): Judgement {
  const usage = { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 };
  const said = { judge: "default", model: "m", verdict, reason: null, error: null, usage };
  return { ...said, key, pass: 0, seed: null, left_out: 0, cached: false, calls: 1 };
}

test("a verdict that is lost, doubled or none is seen", () => {
  expect(rules(judged())).toEqual([]);
  const [first, second] = [verdictOf("first"), verdictOf("second")];
  expect(rules(judged({ verdicts: [first] }))).toEqual(["verdicts", "judge_tokens"]);
  const twice = [first, second, { ...second, usage: { ...second.usage, total_tokens: 0 } }];
  expect(rules(judged({ verdicts: twice }))).toEqual(["verdicts"]);
  expect(rules(judged({ verdicts: [first, verdictOf("second", null)] }))).toEqual(["verdicts"]);
});

test("a judge's token counted twice or not at all is seen", () => {
  const good = judged();
  const { report } = good.told.run;
  const judge = { ...report.usage.judge, total_tokens: 11 };
  const run = { ...good.told.run, report: { ...report, usage: { ...report.usage, judge } } };
  expect(rules({ ...good, told: { ...good.told, run } })).toEqual(["judge_tokens"]);
  expect(rules({ ...good, told: { ...good.told, judgements: [] } })).toContain("judge_tokens");
});

test("a judge that is asked again for no reason is seen", () => {
  const good = judged();
  const [key = "", call] = [...good.judge_calls][0] ?? [];
  if (call === undefined) throw new Error("no call");
  const requests = [...call.requests, { at: 30, ended: "answered" as const }];
  const judge_calls = new Map(good.judge_calls).set(key, { ...call, requests });
  expect(rules({ ...good, judge_calls })).toEqual(["sampled_again"]);
});

test("more calls at once than the run allows are seen", () => {
  const good = account();
  expect(rules({ ...good, most_open: good.plan.max_concurrent })).toEqual([]);
  expect(rules({ ...good, most_open: good.plan.max_concurrent + 1 })).toEqual(["window"]);
  expect(rules({ ...good, most_judging: good.plan.max_concurrent + 1 })).toEqual(["window"]);
});

test("a call sent again with another prompt is seen", () => {
  const good = account();
  const known = good.calls.get("a:1");
  if (known === undefined) throw new Error("no call a:1");
  const calls = new Map(good.calls).set("a:1", { ...known, changed: true });
  expect(rules({ ...good, calls })).toEqual(["prompt_changed"]);
});

test("one token too many or too few is seen, in the report and in the turns", () => {
  const good = account();
  const { report } = good.told.run;
  const usage = { ...report.usage, total_tokens: report.usage.total_tokens + 1 };
  expect(rules(told({ run: { report: { ...report, usage } } }))).toEqual(["tokens"]);
  expect(rules({ ...good, told: { ...good.told, tokens_stored: 1 } })).toEqual(["tokens"]);
});

test("a tool that ran twice is seen, unless it may and a kill came between", () => {
  const runs = (tool: string, ...times: number[]): Account => ({
    ...account(),
    tool_runs: times.map((at) => ({ tool, key: "a:1:c", at })),
  });
  expect(rules(runs("look_up", 990, 1500))).toEqual([]);
  expect(rules(runs("look_up", 20, 30))).toEqual(["tools"]);
  expect(rules(runs("book", 990))).toEqual([]);
  expect(rules(runs("book", 990, 1500))).toEqual(["tools"]);
});

test("a platform that waits to be called after a boot is seen", () => {
  expect(rules(finishedRun([{ ...DEATH, recovery_ms: 2001 }]))).toEqual(["recovery"]);
  expect(rules(finishedRun([{ ...DEATH, recovery_ms: null }]))).toEqual(["recovery"]);
  expect(rules(finishedRun([{ ...DEATH, in_flight: 3, recovery_ms: null }]))).toEqual([]);
});

test("a platform whose store was away after the boot has from its return on", () => {
  const late = finishedRun([{ ...DEATH, recovery_ms: 4000 }]);
  expect(rules({ ...late, outages: [{ from: 900, to: 3600 }] })).toEqual([]);
  expect(rules({ ...late, outages: [{ from: 900, to: 3400 }] })).toEqual(["recovery"]);
  expect(rules({ ...late, outages: [{ from: 100, to: 900 }] })).toEqual(["recovery"]);
});

test("a call awaited in a queue may wait for its deadline after a boot, and no longer", () => {
  const queued = (recovery_ms: number) => {
    const run = finishedRun([{ ...DEATH, recovery_ms }]);
    return rules({ ...run, plan: { ...run.plan, driver: "queue" } });
  };
  expect([queued(7000), queued(7001)]).toEqual([[], ["recovery"]]);
});
