/** A run and a rollout as the API returns them, for tests of the output. */
import type { RolloutView, RunView } from "../../src/contract/run.ts";

export function aRun(counts: Partial<RunView["counts"]>, more: Partial<RunView> = {}): RunView {
  return {
    object: "run",
    id: "run_01aaaaaaaaaaaaaaaaaaaaaaaa",
    kind: "eval",
    name: null,
    status: "running",
    error: null,
    status_reason: { state: "active", reason: null },
    environment: { id: "calculator", version: "1.2.0", digest: "sha256:0" },
    environment_args: {},
    model: "m",
    endpoint: { id: "ep_1", name: null, base_url: "http://h/v1", api_key_last4: null },
    fleet: null,
    agent: null,
    dataset: null,
    judges: {},
    sampling: {},
    num_examples: 10,
    rollouts_per_example: 1,
    max_concurrent: 32,
    limits: { call_timeout_s: 600, max_retries: 2 },
    min_scored: 0.95,
    max_cost_micros: null,
    shuffle: false,
    seed: 0,
    metadata: {},
    counts: {
      planned: 10,
      pending: 0,
      dispatched: 10,
      in_flight: 0,
      scored: 0,
      unscored: {},
      failed: {},
      cancelled: {},
      ...counts,
    },
    report: {
      reward: {
        mean: 0.5,
        se: 0.1,
        ci95: [0.3, 0.7],
        n_tasks: 10,
        n_rollouts: 10,
        n_unscored: 0,
        n_error: 0,
        n_truncated: 0,
      },
      metrics: {},
      pass_at_k: {},
      pass_hat_k: {},
      stop_conditions: {},
      turns: 20,
      usage: { prompt_tokens: 1000, completion_tokens: 234, total_tokens: 1234 },
      calls: 20,
    },
    cost: { policy_micros: null, judge_micros: 0, charged_micros: 0 },
    dead_letters: 0,
    ...{ forked_from: null, rescored_from: null, training: null },
    created_at: 1_795_258_329,
    finished_at: null,
    ...more,
  };
}

/** Two turns: two parallel calls of a tool, then the answer; the environment has the last message. */
export function aRollout(more: Partial<RolloutView> = {}): RolloutView {
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
  const user = { role: "user", content: "What is 3 + 4?" };
  const asking = {
    role: "assistant",
    content: null,
    tool_calls: [
      { id: "a", type: "function", function: { name: "add", arguments: '{"a":3,"b":4}' } },
      { id: "b", type: "function", function: { name: "add", arguments: "{}" } },
    ],
  };
  // Out of order: a result belongs to the call that it names.
  const results = [
    { role: "tool", content: "Error: a is required", tool_call_id: "b" },
    { role: "tool", content: "7", tool_call_id: "a" },
  ];
  const answer = { role: "assistant", content: "It is 7." };
  const last = { role: "user", content: "Right." };
  const turn = {
    usage,
    ...{ latency_ms: 37.4, calls: 1, policy_version: null, is_truncated: false },
    ...{ reward: 1.1, advantage: null },
  };
  return {
    object: "rollout",
    id: "ro_1",
    run_id: "run_1",
    group: 1,
    slot: 0,
    attempt: 0,
    ...{ superseded_by: null, forked_from: null, rescored_from: null },
    status: "done",
    outcome: "scored",
    reason: null,
    task_key: "k",
    example_id: 1,
    prompt: [user],
    completion: [asking, ...results, answer, last],
    ...{ reward: 1.1, advantage: null },
    scores: [
      { name: "right", score: 1, weight: 1 },
      { name: "brief", score: null, weight: 0.1 },
      { name: "num_turns", score: 2, weight: 0 },
    ],
    cost: { policy_micros: null, judge_micros: 0, charged_micros: 0 },
    judgements: [],
    scoring_errors: [{ function: "brief", error: "ScorerError: no", retryable: false }],
    stop_condition: "no_tools_called",
    is_truncated: false,
    error: null,
    cleanup_errors: [],
    failed_calls: [],
    usage: { prompt_tokens: 200, completion_tokens: 40, total_tokens: 240 },
    turns: [
      {
        ...turn,
        index: 0,
        prompt: { keep: 0, append: [user] },
        completion: asking,
        finish_reason: "tool_calls",
      },
      {
        ...turn,
        index: 1,
        prompt: { keep: 2, append: results },
        completion: answer,
        finish_reason: "stop",
        calls: 3,
      },
    ],
    state: { low: 1 },
    started_at: 1_795_258_329,
    ended_at: 1_795_258_330,
    ...more,
  };
}
