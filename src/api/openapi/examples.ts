/** The example of each object on the OpenAPI page. A test holds every one to its schema. */

import type { RunAudit } from "../../contract/audit.ts";
import type { EvalRequestInput } from "../../contract/eval-request.ts";
import type { SftRow } from "../../contract/export.ts";
import type { EnvironmentView, ResultRow, RolloutView, RunView } from "../../contract/run.ts";
import type { RunEvent } from "../../contract/run-events.ts";
import type { DatasetRow, DatasetView } from "../../contract/uploaded-dataset.ts";

const CREATED_AT = 1_792_000_000;
const RUN_ID = "run_01ks2h9q4e7mxw3f0tbn8vc5za2k7p4mxq";
const ROLLOUT_ID = "ro_01ks2h9q4e7mxw3f0tbn8vc5za_0_0_0_h3v6t2wd";
const TASK_KEY = "2c26b46b68ffc68ff99b453c1d304134";
const USAGE = { prompt_tokens: 92, completion_tokens: 61, total_tokens: 153 };
const PROMPT = [{ role: "user", content: "Tom has 3 apples and buys 4. How many has he?" }];
const REPLY = { role: "assistant", content: "3 + 4 = 7, so \\boxed{7}." };

export const RUN_REQUEST: EvalRequestInput = {
  kind: "eval",
  name: "nightly main",
  environment: "gsm8k@1",
  dataset: [{ question: "Tom has 3 apples and buys 4. How many has he?", answer: "#### 7" }],
  model: "qwen3-4b",
  endpoint: { base_url: "https://gpu.example/v1", api_key: "sk-ab12cd34" },
  sampling: { temperature: 0.7, max_tokens: 512 },
  rollouts_per_example: 4,
  seed: 7,
  metadata: { branch: "main" },
};

export const RUN: RunView = {
  object: "run",
  id: RUN_ID,
  kind: "eval",
  name: "nightly main",
  status: "running",
  error: null,
  flow: { state: "active", reason: null },
  environment: { id: "gsm8k", version: "1.0.0", digest: "sha256:9f86d081884c7d65" },
  environment_args: {},
  model: "qwen3-4b",
  endpoint: {
    id: "ep_01ks2h9q4e7mxw3f0tbn8vc5zb5r2j6wqd",
    name: null,
    base_url: "https://gpu.example/v1",
    api_key_last4: "9f2c",
  },
  dataset: null,
  judges: {},
  sampling: { temperature: 0.7, max_tokens: 512 },
  num_examples: 1,
  rollouts_per_example: 4,
  max_concurrent: 32,
  limits: { call_timeout_s: 600, max_retries: 2 },
  min_scored: 0.95,
  shuffle: false,
  seed: 7,
  metadata: { branch: "main" },
  counts: {
    planned: 4,
    pending: 0,
    dispatched: 4,
    in_flight: 2,
    scored: 1,
    unscored: {},
    failed: { provider: 1 },
    cancelled: {},
  },
  report: {
    reward: {
      mean: 1,
      se: null,
      ci95: null,
      wilson95: null,
      range: [1, 1],
      n_tasks: 1,
      n_rollouts: 1,
      n_unscored: 0,
      n_error: 1,
      n_truncated: 0,
    },
    metrics: { answer_length: { mean: 25, se: null, n: 1 } },
    pass_at_k: { "1": 1, "2": null, "4": null },
    pass_hat_k: { "1": 1, "2": null, "4": null },
    pass_k: {
      "1": { n_tasks: 1, n_too_few: 0, at_se: null, hat_se: null },
      "2": { n_tasks: 0, n_too_few: 1, at_se: null, hat_se: null },
      "4": { n_tasks: 0, n_too_few: 1, at_se: null, hat_se: null },
    },
    stop_conditions: { max_turns_reached: 1 },
    turns: 1,
    usage: USAGE,
    calls: 2,
  },
  cost: { judge_micros: 0 },
  dead_letters: 0,
  forked_from: null,
  rescored_from: null,
  training: null,
  created_at: CREATED_AT,
  finished_at: null,
};

export const ROLLOUT: RolloutView = {
  object: "rollout",
  id: ROLLOUT_ID,
  run_id: RUN_ID,
  group: 0,
  slot: 0,
  attempt: 0,
  superseded_by: null,
  forked_from: null,
  rescored_from: null,
  status: "done",
  outcome: "scored",
  reason: null,
  task_key: TASK_KEY,
  example_id: 0,
  prompt: PROMPT,
  completion: [REPLY],
  reward: 1,
  advantage: 0.5,
  scores: [
    { name: "correct_answer", score: 1, weight: 1 },
    { name: "answer_length", score: 25, weight: 0 },
  ],
  scoring_errors: [],
  stop_condition: "max_turns_reached",
  is_truncated: false,
  error: null,
  cleanup_errors: [],
  failed_calls: [],
  usage: USAGE,
  cost: { judge_micros: 0 },
  judgements: [],
  turns: [
    {
      index: 0,
      prompt: { keep: 0, append: PROMPT },
      completion: REPLY,
      finish_reason: "stop",
      usage: USAGE,
      latency_ms: 840,
      calls: 1,
      policy_version: null,
      is_truncated: false,
      reward: 1,
      advantage: 0.5,
    },
  ],
  state: {},
  started_at: CREATED_AT + 1,
  ended_at: CREATED_AT + 2,
};

export const RESULT_ROW: ResultRow = {
  example_id: 0,
  prompt: PROMPT,
  completion: [REPLY],
  answer: "#### 7",
  reward: 1,
  advantage: 0.5,
  error: null,
  timing: { start_time: CREATED_AT + 1, total: 0.84 },
  is_completed: true,
  is_truncated: false,
  stop_condition: "max_turns_reached",
  metrics: { correct_answer: 1, answer_length: 25 },
  token_usage: {
    input_tokens: 92,
    output_tokens: 61,
    final_input_tokens: 92,
    final_output_tokens: 61,
  },
  rollout_id: ROLLOUT_ID,
  task_key: TASK_KEY,
  group: 0,
  slot: 0,
  attempt: 0,
  superseded_by: null,
  outcome: "scored",
  reason: null,
  scoring_errors: [],
  turns: 1,
};

export const SFT_ROW: SftRow = {
  messages: [...PROMPT, REPLY],
  rollout_id: ROLLOUT_ID,
  reward: 1,
  run_id: RUN_ID,
  environment: "gsm8k@1.0.0",
  model: "qwen3-4b",
  task_key: TASK_KEY,
  example_id: 0,
};

export const ENVIRONMENT: EnvironmentView = {
  object: "environment",
  id: "gsm8k",
  version: "1.0.0",
  digest: "sha256:9f86d081884c7d65",
  args: { type: "object", properties: { system_prompt: { type: "string" } } },
  dataset: "uploaded",
  row: {
    type: "object",
    properties: { question: { type: "string" }, answer: { type: "string" } },
    required: ["question", "answer"],
  },
  needs: [],
  judges: [],
};

export const DATASET: DatasetView = {
  object: "dataset",
  id: "ds_01ks2h9q4e7mxw3f0tbn8vc5zcq4m7rt2d",
  name: "gsm8k-test",
  rows: 1319,
  bytes: 749_738,
  sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  environment: { id: "gsm8k", version: "1.0.0", digest: "sha256:9f86d081884c7d65" },
  created_at: CREATED_AT,
};

export const DATASET_ROW: DatasetRow = {
  index: 0,
  row: { question: "Tom has 3 apples and buys 4. How many has he?", answer: "#### 7" },
};

/** One event of a stream, its fields as an object. */
export const RUN_EVENT: RunEvent = {
  id: 41,
  event: "rollout.finished",
  data: {
    rollout_id: ROLLOUT_ID,
    example_id: 0,
    outcome: "scored",
    reason: null,
    reward: 1,
    turns: 1,
    stop_condition: "max_turns_reached",
  },
};

export const AUDIT: RunAudit = {
  object: "audit",
  run_id: RUN_ID,
  holds: false,
  as_of: CREATED_AT + 60,
  counts: RUN.counts,
  sources: {
    counters: RUN.counts,
    run_rows: RUN.counts,
    d1: {
      scored: 1,
      unscored: {},
      failed: { timeout: 1 },
      cancelled: {},
      drained_to: 2,
      rows: 2,
    },
    r2: { segments: 0, rollouts: 0, trajectories: 0 },
  },
  notes: [],
  violations: [{ rule: "d1_row_matches", detail: `${ROLLOUT_ID} reason: "timeout", not "provider"` }],
};
