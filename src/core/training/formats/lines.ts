/**
 * Writes a row in the formats of other trainers: one JSON object per row. docs/training-data.md describes every field.
 *
 * Invariants. Nothing is computed except slices, shifts and names: ids, logprobs, rewards and advantages are the
 * batch's; a format without weights has the advantage times the weight of its row. Each logprob is the shortest decimal
 * that is the same float32.
 */
import { encodeRows, type SampleRow, shortest } from "../sample-row.ts";
import {
  type CreditedRow,
  firstSampled,
  stableNumber,
  tokenAdvantages,
  tokenWeights,
  weightedAdvantage,
} from "./credited-row.ts";

/** TRL gives the first weights that it sends the version 1. */
const TRL_FIRST_VERSION = 1;

/** The fields of `RolloutSample` of TRL's AsyncGRPOTrainer, without the conversation, which rows do not have. */
export function trlSample(credited: CreditedRow): object {
  const { row, reward } = credited;
  return {
    prompt: [],
    completion: [],
    input_ids: Array.from(row.token_ids),
    completion_mask: Array.from(row.mask),
    old_log_probs: floats(row.logprobs),
    advantage: weightedAdvantage(credited),
    model_version: row.policy_version_start + TRL_FIRST_VERSION,
    group_id: stableNumber(row.group_id),
    metrics: reward === null ? {} : { reward },
  };
}

/** One entry of each list of a `rollout_func` of TRL's GRPOTrainer; other fields are for reward functions. */
export function trlRollout(credited: CreditedRow): object {
  const { row, reward } = credited;
  const { prompt, response, mask, logprobs } = splitAtResponse(row);
  return {
    prompt_ids: prompt,
    completion_ids: response,
    env_mask: mask,
    logprobs: logprobs.map((logprob) => [logprob]),
    reward,
    advantage: weightedAdvantage(credited),
    rollout_id: row.rollout_id,
  };
}

/** A `Datum` of tinker: the inputs are all tokens but the last, and everything else is shifted by one. */
export function tinkerDatum(credited: CreditedRow): object {
  const { row } = credited;
  const length = row.token_ids.length - 1;
  const weighted = tokenAdvantages(credited).map((advantage) => advantage * credited.weight);
  const tensor = (data: number[], dtype: "int64" | "float32") => ({ data: data.slice(1), dtype, shape: [length] });
  return {
    model_input: { chunks: [{ type: "encoded_text", tokens: Array.from(row.token_ids.subarray(0, length)) }] },
    loss_fn_inputs: {
      target_tokens: tensor(Array.from(row.token_ids), "int64"),
      logprobs: tensor(floats(row.logprobs), "float32"),
      advantages: tensor(weighted, "float32"),
    },
  };
}

/** The input of slime's `Sample.from_dict`; `advantage` is not a field there, and becomes an attribute. */
export function slimeSample(credited: CreditedRow): object {
  const { row, reward, index, group } = credited;
  const { response, mask, logprobs } = splitAtResponse(row);
  const versions = row.weight_versions?.map(({ version }) => version) ?? [row.policy_version_start];
  return {
    index,
    group_index: group,
    rollout_id: stableNumber(row.rollout_id),
    tokens: Array.from(row.token_ids),
    response_length: response.length,
    reward,
    advantage: weightedAdvantage(credited),
    loss_mask: mask,
    rollout_log_probs: logprobs,
    ...(row.ref_logprobs && { teacher_log_probs: floats(row.ref_logprobs.subarray(firstSampled(row))) }),
    weight_versions: versions.map(String),
    status: "completed",
  };
}

/** The fields of verl's `AgentLoopOutput`, also the reward by token, and the group as `uid`. */
export function verlOutput(credited: CreditedRow): object {
  const { row, reward } = credited;
  const { prompt, response, mask, logprobs } = splitAtResponse(row);
  const spans = row.weight_versions ?? [];
  const versions =
    spans.length > 0 ? spans.map(({ version }) => version) : [row.policy_version_start, row.policy_version_end];
  return {
    uid: row.group_id,
    rollout_id: row.rollout_id,
    prompt_ids: prompt,
    response_ids: response,
    response_mask: mask,
    response_logprobs: logprobs,
    reward_score: reward,
    advantage: weightedAdvantage(credited),
    rm_scores: response.map((_, at) => (at === response.length - 1 ? reward : 0)),
    // Times of generation and tools, which rows do not have: verl requires the object, and has a default for each time.
    metrics: {},
    extra_fields: { min_global_steps: Math.min(...versions), max_global_steps: Math.max(...versions) },
  };
}

/** One entry of each list of SkyRL's `GeneratorOutput`. */
export function skyrlOutput(credited: CreditedRow): object {
  const { row, reward, member, last } = credited;
  const { prompt, response, mask, logprobs } = splitAtResponse(row);
  return {
    prompt_token_ids: prompt,
    response_ids: response,
    rewards: reward,
    advantage: weightedAdvantage(credited),
    loss_masks: mask,
    rollout_logprobs: logprobs,
    trajectory_ids: { instance_id: row.group_id, repetition_id: member },
    rollout_id: row.rollout_id,
    is_last_step: last,
  };
}

/** `rl.sample/1` itself, with its credit: a line of JSON. */
export function neutralLine(credited: CreditedRow): Uint8Array<ArrayBuffer> {
  const { row, reward, advantage } = credited;
  const credit = { reward, ...(advantage === null ? {} : { advantage }) };
  return encodeRows([{ ...row, ...credit, rl_weights: tokenWeights(credited) }], "jsonl");
}

function splitAtResponse(row: SampleRow) {
  const first = firstSampled(row);
  return {
    prompt: Array.from(row.token_ids.subarray(0, first)),
    response: Array.from(row.token_ids.subarray(first)),
    mask: Array.from(row.mask.subarray(first)),
    logprobs: floats(row.logprobs.subarray(first)),
  };
}

function floats(values: Float32Array): number[] {
  return Array.from(values, shortest);
}
