/**
 * Makes rows for training again from what is stored, as docs/training-data.md says, without the product's code. A
 * conversation is joined from its turns, and facts about the text of a call's arguments are read from the text.
 */
import type { Message } from "../../src/contract/messages.ts";
import type { Trajectory } from "../../src/contract/trajectory.ts";
import type { StoredRollout, StoredRun } from "./stored-rollouts.ts";

export interface Asked {
  readonly format: "sft" | "dpo" | "verifiers";
  readonly min_reward?: number;
  readonly best_of_group?: boolean;
  readonly dedupe?: boolean;
}

type Row = Record<string, unknown>;

export interface Exported {
  readonly rows: readonly Row[];
  /** In the order of the rows they would be. */
  readonly left_out: readonly { readonly rollout_id: string; readonly reason: string }[];
}

/** A rollout that counts: the last attempt of its slot. */
interface Counted extends StoredRollout {
  readonly messages: readonly Message[];
  /** How many of the messages came before the model's first reply. */
  readonly given: number;
}

type Scored = Counted & { readonly reward: number };
type Line = { readonly row: Row } | { readonly rollout_id: string; readonly reason: string };

export function rowsByHand({ run, rollouts }: StoredRun, asked: Asked): Exported {
  const counted = latestOf(rollouts).map(conversation);
  const origin = {
    run_id: run.id,
    environment: `${run.environment_id}@${run.environment_version}`,
    model: run.model,
  };
  const lines = linesOf(counted, asked, origin);
  return {
    rows: lines.flatMap((line) => ("row" in line ? [line.row] : [])),
    left_out: lines.flatMap((line) => ("row" in line ? [] : [line])),
  };
}

function linesOf(counted: readonly Counted[], asked: Asked, origin: Row): Line[] {
  const { format, min_reward: least = Number.NEGATIVE_INFINITY } = asked;
  const scored = counted.flatMap((one): Scored[] => {
    const { reward, outcome } = one.row;
    return outcome === "scored" && reward !== null ? [{ ...one, reward }] : [];
  });
  if (format === "dpo") {
    const distinct = asked.dedupe ? firstToSay(scored) : scored;
    return pairsOf(distinct, asked.best_of_group === true)
      .filter(([chosen]) => chosen.reward >= least)
      .map(([chosen, rejected]) => dpoLine(chosen, rejected, origin));
  }
  const worthy = scored.filter(({ reward }) => reward >= least);
  const filtered = asked.min_reward !== undefined || asked.best_of_group === true;
  let chosen: readonly Counted[] = format === "sft" || filtered ? worthy : counted;
  if (asked.best_of_group) {
    const best = groupsOf(worthy).map(([first]) => first);
    chosen = worthy.filter((one) => best.includes(one));
  }
  if (asked.dedupe) chosen = firstToSay(chosen);
  if (format === "verifiers") return chosen.map((one) => ({ row: verifiersRow(one, origin) }));
  return chosen.map((one) => sftLine(one, origin));
}

/** The last attempt of each slot; the order is unchanged. */
function latestOf(rollouts: readonly StoredRollout[]): StoredRollout[] {
  return rollouts.filter(({ row }) =>
    rollouts.every(
      ({ row: other }) =>
        other.group_index !== row.group_index || other.slot !== row.slot || other.attempt <= row.attempt,
    ),
  );
}

/** From its turns: the messages before each, and the reply. */
function conversation(stored: StoredRollout): Counted {
  const { turns = [], final_env_response = null, prompt = [] } = stored.trajectory ?? {};
  let messages: readonly Message[] = [];
  for (const turn of turns) {
    messages = [...messages.slice(0, turn.prompt.keep), ...turn.prompt.append, turn.completion];
  }
  if (turns.length === 0) messages = prompt;
  const given = turns[0]?.prompt.append.length ?? prompt.length;
  return { ...stored, messages: [...messages, ...(final_env_response ?? [])], given };
}

function firstToSay<One extends Counted>(all: readonly One[]): One[] {
  const heard = new Set<string>();
  return all.filter(({ messages, given }) => {
    const words = JSON.stringify([given, messages]);
    return heard.size < heard.add(words).size;
  });
}

/** Groups in order, the best rollout of each first; of equals the one in the lower slot. */
function groupsOf(scored: readonly Scored[]): Scored[][] {
  const groups = Map.groupBy(scored, ({ row }) => row.group_index);
  return [...groups.keys()]
    .sort((a, b) => a - b)
    .map((group) => (groups.get(group) ?? []).toSorted((a, b) => b.reward - a.reward || a.row.slot - b.row.slot));
}

/** From both ends of each group towards its middle. */
function pairsOf(scored: readonly Scored[], widest: boolean): [Scored, Scored][] {
  return groupsOf(scored).flatMap((group) => {
    const pairs: [Scored, Scored][] = [];
    for (let [from, to] = [0, group.length - 1]; from < to; [from, to] = [from + 1, to - 1]) {
      const [chosen, rejected] = [group[from], group[to]];
      if (chosen === undefined || rejected === undefined) continue;
      const alike = JSON.stringify(chosen.messages) === JSON.stringify(rejected.messages);
      if (chosen.reward !== rejected.reward && !alike) pairs.push([chosen, rejected]);
    }
    return widest ? pairs.slice(0, 1) : pairs;
  });
}

function sftLine({ row, trajectory, messages }: Counted, origin: Row): Line {
  const told = chat(messages);
  if (typeof told === "string") return { rollout_id: row.id, reason: told };
  const about = { rollout_id: row.id, reward: row.reward, task_key: row.task_key };
  return {
    row: { messages: told, ...offered(trajectory), ...about, ...exampleOf(row), ...origin },
  };
}

function dpoLine(chosen: Scored, rejected: Scored, origin: Row): Line {
  const halves = [];
  for (const { row, messages, given } of [chosen, rejected]) {
    const told = chat(messages);
    if (typeof told === "string") return { rollout_id: row.id, reason: told };
    halves.push([told.slice(0, given), told.slice(given)]);
  }
  const [[prompt, better] = [], [otherPrompt, worse] = []] = halves;
  if (JSON.stringify(prompt) !== JSON.stringify(otherPrompt)) {
    return { rollout_id: chosen.row.id, reason: "prompts_differ" };
  }
  return {
    row: {
      ...{ prompt, chosen: better, rejected: worse },
      ...offered(chosen.trajectory),
      chosen_rollout_id: chosen.row.id,
      rejected_rollout_id: rejected.row.id,
      chosen_reward: chosen.reward,
      rejected_reward: rejected.reward,
      task_key: chosen.row.task_key,
      ...exampleOf(chosen.row),
      ...origin,
    },
  };
}

const exampleOf = ({ example_id }: StoredRollout["row"]) => ({ example_id });

function offered(trajectory: Trajectory | null): Row {
  return trajectory?.tools === undefined ? {} : { tools: trajectory.tools };
}

/** In the form of chat templates, whose arguments are objects; or why that is impossible. */
function chat(messages: readonly Message[]): Row[] | string {
  const told: Row[] = [];
  for (const message of messages) {
    const row: Row = { ...message, role: message.role === "text" ? "user" : message.role };
    const calls = [];
    for (const { id, type, function: called } of message.tool_calls ?? []) {
      const read = argumentsIn(called.arguments);
      if (typeof read === "string") return read;
      calls.push({ id, type, function: { name: called.name, arguments: read } });
    }
    told.push(message.tool_calls === undefined ? row : { ...row, tool_calls: calls });
  }
  return told;
}

/** The object that the text contains, or what is wrong with it. */
function argumentsIn(text: string): object | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "invalid_json";
  }
  if (Object.prototype.toString.call(value) !== "[object Object]") return "not_an_object";
  const bare = text.replace(/"(?:[^"\\]|\\.)*"/g, "");
  for (const [number] of bare.matchAll(/\d+(\.\d+)?([eE][+-]?\d+)?/g)) {
    const whole = /^\d+$/.test(number);
    if (whole ? BigInt(number) >= 2n ** 53n : !Number.isFinite(Number(number))) {
      return "inexact_number";
    }
  }
  // Characters that are not valid Unicode are escaped, whatever they were read from.
  if (/\\ud[89a-f]/.test(JSON.stringify(value))) return "no_unicode";
  let [depth, deepest] = [0, 0];
  for (const [bracket] of bare.matchAll(/[[\]{}]/g)) {
    depth += bracket === "[" || bracket === "{" ? 1 : -1;
    deepest = Math.max(deepest, depth);
  }
  return deepest > 100 ? "too_deep" : (value as object);
}

/** A line of verifiers' results.jsonl. */
function verifiersRow({ row, trajectory, messages, given }: Counted, origin: Row): Row {
  const scores: { name: string; score: number | null }[] = JSON.parse(row.scores ?? "[]");
  const metrics = Object.fromEntries(scores.map(({ name, score }) => [name, score]));
  const [start, end] = [row.started_at ?? Number.NaN, row.ended_at ?? Number.NaN];
  const [start_time, total] = [start / 1000, (end - start) / 1000];
  const saved = messages.map(savedByVerifiers);
  const told = {
    ...{ example_id: row.example_id, rollout_id: row.id, task_key: row.task_key, ...origin },
    ...{ prompt: saved.slice(0, given), completion: saved.slice(given) },
    ...(trajectory?.answer && { answer: trajectory.answer }),
    ...(JSON.stringify(trajectory?.info ?? {}) !== "{}" && { info: trajectory?.info }),
    ...{ reward: row.reward, metrics, is_completed: true, is_truncated: row.is_truncated === 1 },
    stop_condition: row.stop_condition,
    ...{ tool_defs: trajectory?.tools?.map((tool) => tool.function) ?? null },
    timing: {
      ...{ start_time, total },
      generation: { start: start_time, end: start_time + total, duration: total },
    },
    ...usageOf(row, trajectory),
    ...errorOf(row),
  };
  return { ...metrics, ...told };
}

function savedByVerifiers({ tool_calls, ...message }: Message): Row {
  if (tool_calls === undefined) return { ...message };
  const texts = tool_calls.map(({ id, function: called }) =>
    JSON.stringify({ id, name: called.name, arguments: called.arguments }),
  );
  return { ...message, tool_calls: texts };
}

/** `final_`: input and output of the last call, except that all sampled tokens count as output. */
function usageOf(row: StoredRollout["row"], trajectory: Trajectory | null): Row {
  const usages = (trajectory?.turns ?? []).flatMap(({ usage }) => usage ?? []);
  const last = usages.at(-1);
  const input_tokens = usages.reduce((sum, { prompt_tokens }) => sum + prompt_tokens, 0);
  const said = usages.reduce((sum, { completion_tokens }) => sum + completion_tokens, 0);
  if (last === undefined || row.prompt_tokens + row.completion_tokens === 0) return {};
  const context = last.prompt_tokens + last.completion_tokens;
  const finals = { final_input_tokens: context - said, final_output_tokens: said };
  return { token_usage: { input_tokens, output_tokens: said, ...finals } };
}

function errorOf(row: StoredRollout["row"]): Row {
  if (row.error === null) return { error: null };
  const { error, error_chain_repr, error_chain_str } = JSON.parse(row.error);
  return {
    error: { error, error_chain_repr, error_chain_str },
    ...{ error_chain: error_chain_repr, long_error_chain: error_chain_str },
  };
}
