/** Shows that the suite can fail: each rule reports its violation. */
import { expect, test } from "vitest";
import type { Judgement } from "../../src/contract/judgement.ts";
import type { ResultRow, RunView } from "../../src/contract/run.ts";
import type { RunEvent } from "../../src/contract/run-events.ts";
import type { Account } from "./account.ts";
import { violationsOf } from "./check.ts";
import { finishedRun, saidTo } from "./finished-run.ts";

const DEATH = {
  victim: "group",
  after: 1000,
  before: 1010,
  in_flight: 12,
  ready_at: 1500,
  recovery_ms: 400,
} as const;

/** Two rollouts of two turns; workerd crashed once, with one call in flight. */
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
  const said = saidTo(key);
  const requests = times.map(([at, ended]) => ({
    ...{ at, ended, said: ended === "answered" ? said : null },
  }));
  return { ...good, calls: new Map(good.calls).set(key, { ...known, requests }) };
}

test("a run with nothing lost and nothing doubled violates no rule", () => {
  expect(violationsOf(account())).toEqual([]);
});

test("a run that does not end, or whose counts do not add up, is reported", () => {
  expect(rules(told({ run: { finished_at: null } }))).toEqual(["ended"]);
  const { counts } = account().told.run;
  expect(rules(told({ run: { counts: { ...counts, scored: 1 } } }))).toEqual(["accounting"]);
});

test("the findings of the audit are reported, and a D1 that is behind the run", () => {
  const { told: good, ...rest } = account();
  const violations = [{ rule: "r2_has_every_object" as const, detail: "one is missing" }];
  const found = { ...good.audit, holds: false, violations };
  expect(rules({ ...rest, told: { ...good, audit: found } })).toEqual(["audit"]);
  const d1 = { ...good.audit.sources.d1, current: false };
  const behind = { ...good.audit, sources: { ...good.audit.sources, d1 } };
  expect(rules({ ...rest, told: { ...good, audit: behind } })).toEqual(["audit"]);
});

test("a lost, doubled or unknown rollout is reported", () => {
  const [first, second] = account().told.results;
  if (first === undefined || second === undefined) throw new Error("two results");
  expect(rules(told({ results: [first] }))).toContain("rollouts");
  expect(rules(told({ results: [first, second, second] }))).toContain("rollouts");
  expect(rules(told({ results: [first, { ...second, rollout_id: "other" }] }))).toContain("rollouts");
});

test("a reward, message or outcome that differs from the calm run is reported", () => {
  const [first, second] = account().told.results;
  if (first === undefined || second === undefined) throw new Error("two results");
  for (const changes of [{ reward: 0 }, { completion: [] }, { outcome: "failed", reason: "platform" } as const]) {
    expect(rules(told({ results: [{ ...first, ...changes }, second] }))).toEqual(["content"]);
  }
  const cutOff = { outcome: "failed", reason: "tool_outcome_unknown" } as const;
  const results = [{ ...first, ...cutOff }, second];
  expect(rules(told({ results }))).toEqual([]);
  expect(rules({ ...told({ results }), deaths: [] })).toContain("content");
});

test("another organisation's id in an answer is a violation", () => {
  expect(rules({ ...account(), foreign: ["run_of_another"] })).toEqual(["foreign"]);
});

test("a call sent again is reported, unless it failed, its sender died or it timed out", () => {
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

test("a turn requested after a later one is reported, also across a kill", () => {
  expect(
    rules(
      call("a:0", [
        [10, "answered"],
        [1500, "answered"],
      ]),
    ),
  ).toEqual(["turn_order"]);
});

/** The run of two rollouts, with a judge that was called for each. */
function judged(changes: { asked?: readonly string[]; verdicts?: readonly Judgement[] } = {}) {
  const good = account();
  const { asked = ["first", "second"], verdicts = asked.map((key) => verdictOf(key)) } = changes;
  const usage = { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 };
  const judge_calls = new Map(
    asked.map((rollout, index) => {
      const said = { digest: "", usage };
      const requests = [{ at: 20 + index, ended: "answered" as const, said }];
      return [`run:judge:0:${rollout}:0`, { rollout, turn: 0, requests, changed: false }];
    }),
  );
  const { report } = good.told.run;
  const total_tokens = verdicts.reduce((sum, verdict) => sum + verdict.usage.total_tokens, 0);
  const judge = { ...usage, total_tokens, calls: verdicts.length, cost_micros: null };
  const run = { ...good.told.run, report: { ...report, usage: { ...report.usage, judge } } };
  return { ...good, judge_calls, told: { ...good.told, run, judgements: verdicts } };
}

function verdictOf(key: string, verdict: string | null = "well"): Judgement {
  const usage = { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 };
  const said = { judge: "default", model: "m", verdict, reason: null, error: null, usage };
  return { ...said, key, pass: 0, seed: null, left_out: 0, cached: false, calls: 1, cost_micros: null };
}

test("a missing, doubled or null judgement is reported", () => {
  expect(rules(judged())).toEqual([]);
  const [first, second] = [verdictOf("first"), verdictOf("second")];
  expect(rules(judged({ verdicts: [first] }))).toEqual(["verdicts", "judge_tokens"]);
  const twice = [first, second, { ...second, usage: { ...second.usage, total_tokens: 0 } }];
  expect(rules(judged({ verdicts: twice }))).toEqual(["verdicts"]);
  expect(rules(judged({ verdicts: [first, verdictOf("second", null)] }))).toEqual(["verdicts"]);
});

test("a judge's token counted twice or not at all is reported", () => {
  const good = judged();
  const { report } = good.told.run;
  const spent = report.usage.judge;
  if (spent === undefined) throw new Error("no judge was asked");
  const judge = { ...spent, total_tokens: 11 };
  const run = { ...good.told.run, report: { ...report, usage: { ...report.usage, judge } } };
  expect(rules({ ...good, told: { ...good.told, run } })).toEqual(["judge_tokens"]);
  expect(rules({ ...good, told: { ...good.told, judgements: [] } })).toContain("judge_tokens");
});

test("a judge that is called again without a reason is reported", () => {
  const good = judged();
  const [key = "", call] = [...good.judge_calls][0] ?? [];
  if (call === undefined) throw new Error("no call");
  const [said] = call.requests.map((request) => request.said);
  if (said === undefined) throw new Error("it was never asked");
  const requests = [...call.requests, { at: 30, ended: "answered" as const, said }];
  const judge_calls = new Map(good.judge_calls).set(key, { ...call, requests });
  expect(rules({ ...good, judge_calls })).toEqual(["sampled_again"]);
});

test("more calls at once than the run allows are reported", () => {
  const good = account();
  expect(rules({ ...good, most_open: good.plan.max_concurrent })).toEqual([]);
  expect(rules({ ...good, most_open: good.plan.max_concurrent + 1 })).toEqual(["window"]);
  expect(rules({ ...good, most_judging: good.plan.max_concurrent + 1 })).toEqual(["window"]);
});

test("a call sent again with another prompt is reported", () => {
  const good = account();
  const known = good.calls.get("a:1");
  if (known === undefined) throw new Error("no call a:1");
  const calls = new Map(good.calls).set("a:1", { ...known, changed: true });
  expect(rules({ ...good, calls })).toEqual(["prompt_changed"]);
});

test("one token too many or too few is reported, in the report and in the turns", () => {
  const good = account();
  const { report } = good.told.run;
  const usage = { ...report.usage, total_tokens: report.usage.total_tokens + 1 };
  expect(rules(told({ run: { report: { ...report, usage } } }))).toEqual(["tokens"]);
  const turns = new Map(good.told.turns);
  turns.delete("b:1");
  expect(rules({ ...good, told: { ...good.told, turns } })).toEqual(["book", "tokens"]);
});

test("a turn stored with another answer than the model gave is reported, also for a fickle model", () => {
  const good = account();
  const plan = { ...good.plan, fickle: true };
  for (const said of [
    { ...saidTo("a:0"), digest: "other" },
    { ...saidTo("a:0"), usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } },
  ]) {
    const told = { ...good.told, turns: new Map(good.told.turns).set("a:0", said) };
    expect(rules({ ...good, plan, told })).toEqual(["book"]);
  }
  const another = call("a:1", [
    [990, "answered"],
    [1500, "answered"],
  ]);
  const [first] = another.calls.get("a:1")?.requests ?? [];
  if (first === undefined) throw new Error("no request");
  first.said = saidTo("what was lost with the kill");
  expect(rules({ ...another, plan })).toEqual([]);
});

/** The run's events, some of them replaced. */
function heard(change: (events: RunEvent[]) => readonly (RunEvent | undefined)[]): Account {
  const good = account();
  const events = change([...good.told.events]).filter((event) => event !== undefined);
  return { ...good, told: { ...good.told, events } };
}

const stands = (id: number, event: "run.paused" | "run.resumed", status: RunView["status"]) => {
  return { id, event, data: { status, reason: "user" as const } };
};

test("events with a gap, an end too many or too few, or an event after the last are reported", () => {
  expect(new Set(rules(heard(([first, , last]) => [first, last])))).toEqual(new Set(["events"]));
  expect(rules(heard(([first, second]) => [first, second]))).toEqual(["events"]);
  expect(rules(heard(([first, , last]) => [first, first && { ...first, id: 2 }, last]))).toContain("events");
  expect(
    rules(heard(([first, second, last]) => [first, last && { ...last, id: 2 }, second && { ...second, id: 3 }])),
  ).toContain("events");
});

test("a run that is paused twice, or dispatches while it is paused, is reported", () => {
  const { counts, report } = account().told.run;
  const { reward, turns, usage } = report;
  const progress = (id: number, dispatched: number): RunEvent => {
    const data = { counts: { ...counts, dispatched }, reward, turns, usage };
    return { id, event: "run.progress", data };
  };
  const around = (between: readonly RunEvent[]) =>
    heard((events) => [
      stands(1, "run.paused", "paused"),
      ...between,
      ...events.map((event) => ({ ...event, id: event.id + 1 + between.length })),
    ]);
  expect(rules(around([progress(2, 1), progress(3, 1)]))).toEqual([]);
  expect(rules(around([stands(2, "run.resumed", "running"), progress(3, 1), progress(4, 2)]))).toEqual([]);
  expect(rules(around([progress(2, 1), progress(3, 2)]))).toEqual(["events"]);
  expect(rules(around([stands(2, "run.paused", "paused")]))).toEqual(["events"]);
  expect(rules(around([stands(2, "run.resumed", "paused")]))).toEqual(["events"]);
});

test("a cancelled run may end what is in progress, and another run may not", () => {
  const good = account();
  const [first, second] = good.told.results;
  if (first === undefined || second === undefined) throw new Error("two results");
  const { counts } = good.told.run;
  const stopped = { ...second, outcome: "cancelled" as const, reason: "user", reward: null };
  const turns = new Map([...good.told.turns].filter(([key]) => key !== "b:1"));
  const { report } = good.told.run;
  const run: RunView = {
    ...good.told.run,
    status: "cancelled",
    counts: { ...counts, scored: 1, cancelled: { user: 1 } },
    report: { ...report, usage: { ...report.usage, total_tokens: 30 } },
  };
  const ends = good.told.events.map((event) =>
    event.event === "run.completed" ? { ...event, event: "run.cancelled" as const } : event,
  );
  const told = { ...good.told, run, results: [first, stopped], turns, events: ends };
  const askings = [{ does: "cancel" as const, at: 20 }];
  expect(rules({ ...good, told, askings })).toEqual([]);
  expect(rules({ ...good, told })).toEqual(["ended"]);
});

test("attempts in a slot that do not follow each other, or two that count, are reported", () => {
  const good = account();
  const [first, second] = good.told.results;
  if (first === undefined || second === undefined) throw new Error("two results");
  const { counts } = good.told.run;
  const grown = { ...counts, planned: 3, dispatched: 3, scored: 2, failed: { provider: 1 } };
  const askings = [{ does: "retry" as const, at: 20 }];
  const next = { ...second, rollout_id: "c", attempt: 1 };
  const ended = { id: 3, event: "rollout.finished", data: { rollout_id: "c" } };
  const [one, two, last] = good.told.events;
  const events = [one, two, { ...two, ...ended, data: { ...two?.data, ...ended.data } }];
  const retried = (results: readonly ResultRow[]) => {
    const told = {
      ...good.told,
      results,
      run: { ...good.told.run, counts: grown },
      events: [...events, { ...last, id: 4 }] as RunEvent[],
    };
    return { ...good, askings, told };
  };
  expect(rules(retried([first, { ...second, superseded_by: "c" }, next]))).toEqual([]);
  expect(rules(retried([first, second, next]))).toEqual(["rollouts"]);
  expect(rules(retried([first, second, { ...next, attempt: 2 }]))).toEqual(["rollouts"]);
});

test("a tool that ran twice is reported, unless it may and a kill came in between, or an isolate was lost", () => {
  const runs = (tool: string, ...times: number[]): Account => ({
    ...account(),
    tool_runs: times.map((at) => ({ tool, key: "a:1:c", at })),
  });
  expect(rules(runs("look_up", 990, 1500))).toEqual([]);
  expect(rules(runs("look_up", 20, 30))).toEqual(["tools"]);
  expect(rules(runs("book", 990))).toEqual([]);
  expect(rules(runs("book", 990, 1500))).toEqual(["tools"]);
  const lost = (tool: string): Account => {
    const { injected, ...rest } = runs(tool, 20, 30);
    return { ...rest, injected: { ...injected, isolates_lost: 1 } };
  };
  expect([rules(lost("look_up")), rules(lost("book"))]).toEqual([[], ["tools"]]);
});

test("a platform that does nothing after a boot until it is called is reported", () => {
  expect(rules(finishedRun([{ ...DEATH, recovery_ms: 2001 }]))).toEqual(["recovery"]);
  expect(rules(finishedRun([{ ...DEATH, recovery_ms: null }]))).toEqual(["recovery"]);
  expect(rules(finishedRun([{ ...DEATH, in_flight: 3, recovery_ms: null }]))).toEqual([]);
});

test("a platform whose store failed after the boot is measured from the store's return", () => {
  const late = finishedRun([{ ...DEATH, recovery_ms: 4000 }]);
  expect(rules({ ...late, outages: [{ from: 900, to: 3600 }] })).toEqual([]);
  expect(rules({ ...late, outages: [{ from: 900, to: 3400 }] })).toEqual(["recovery"]);
  expect(rules({ ...late, outages: [{ from: 100, to: 900 }] })).toEqual(["recovery"]);
});
