/** The account of a small run without faults: two rollouts of two turns, 10 tokens a turn. */
import type { RunAudit } from "../../src/contract/audit.ts";
import type { ResultRow, RunView } from "../../src/contract/run.ts";
import type { RunEvent } from "../../src/contract/run-events.ts";
import { aRun } from "../cli/a-run.ts";
import type { Account, Death, Told } from "./account.ts";
import type { Said } from "./fault-model.ts";
import { planOf } from "./plan.ts";

const KEYS = ["a:0", "a:1", "b:0", "b:1"];

export function finishedRun(deaths: readonly Death[]): Account {
  const told: Told = {
    run: RUN,
    results: [row("a", 0), row("b", 1)],
    turns: new Map(KEYS.map((key) => [key, saidTo(key)])),
    timed_out: new Map(),
    events: EVENTS,
    judgements: [],
    audit,
  };
  return {
    plan: { ...planOf(1, 2), num_examples: 2, rollouts_per_example: 1, fickle: false },
    calm: told,
    told,
    calls: new Map(KEYS.map((key, index) => [key, call(key, 10 + index)])),
    most_open: 2,
    judge_calls: new Map(),
    most_judging: 0,
    tool_runs: [],
    foreign: [],
    deaths,
    outages: [],
    askings: [],
    billed: null,
    injected: {
      ...{ dropped: 0, duplicated: 0, delayed: 0, queues: {}, replies_lost: 0, isolates_lost: 0 },
      ...{ store_failures: 0, model_faults: 0 },
    },
  };
}

function call(key: string, at: number) {
  const [rollout = "", turn] = key.split(":");
  const requests = [{ at, ended: "answered" as const, said: saidTo(key) }];
  return { rollout, turn: Number(turn), requests, changed: false };
}

/** The model's reply to that call. */
export function saidTo(digest: string): Said {
  return { digest, usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 } };
}

function row(rollout_id: string, group: number): ResultRow {
  return {
    ...{ example_id: group, prompt: [], completion: [{ role: "assistant", content: "4" }] },
    ...{
      reward: 1,
      advantage: null,
      error: null,
      timing: { start_time: 0, total: 1 },
      is_completed: true,
    },
    ...{ is_truncated: false, stop_condition: "no_tools_called", metrics: { right: 1 } },
    ...{ token_usage: { input_tokens: 16, output_tokens: 4 }, rollout_id, task_key: "k" },
    ...{ group, slot: 0, attempt: 0, outcome: "scored", reason: null, scoring_errors: [] },
    ...{ superseded_by: null, turns: 2 },
  };
}

const { report } = aRun({});
const RUN: RunView = aRun(
  { planned: 2, dispatched: 2, scored: 2 },
  {
    status: "completed",
    report: {
      ...report,
      usage: { prompt_tokens: 32, completion_tokens: 8, total_tokens: 40 },
    },
    finished_at: 1,
  },
);

const { counts } = RUN;
const audit: RunAudit = {
  ...{ object: "audit", run_id: RUN.id, holds: true, as_of: 1, counts, notes: [], violations: [] },
  sources: {
    ...{ counters: counts, run_rows: counts },
    d1: { ...counts, current: true },
    r2: { segments: 1, rollouts: 2, trajectories: 0 },
  },
};

const ENDED = { example_id: 0, outcome: "scored", reason: null, reward: 1, turns: 2 } as const;
const EVENTS: readonly RunEvent[] = [
  ...["a", "b"].map((rollout_id, index) => ({
    id: index + 1,
    event: "rollout.finished" as const,
    data: { ...ENDED, rollout_id, stop_condition: null },
  })),
  { id: 3, event: "run.completed", data: { status: "completed", error: null } },
];
