/**
 * Converts a run to a trace: the run, its rollouts, and below each rollout its turns, failed calls and judges' calls.
 * OTLP as JSON; attributes by OpenTelemetry's GenAI semantic conventions. Pure.
 *
 * Invariants. Ids are derived from the ids of the run, the rollout and the turn, so the same rollout always gives the
 * same spans. Prompts and completions are included only if `content` is true.
 */
import type { Messages } from "../contract/messages.ts";
import { promptOf, type StoredTurn, type Trajectory } from "../contract/trajectory.ts";
import type { JudgeCalls, RolloutEntry, SegmentTrace } from "../kernel/messages/run-records.ts";

type Value =
  | { readonly stringValue: string }
  | { readonly intValue: string }
  | { readonly doubleValue: number }
  | { readonly boolValue: boolean }
  | { readonly arrayValue: { readonly values: readonly Value[] } };

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 1: inside the platform. 3: a call to a model. */
  readonly kind: 1 | 3;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Value }[];
  readonly status?: { readonly code: 2; readonly message?: string };
}

/** SHA-256 of a text, in hex. */
export type Hash = (text: string) => string;

export interface SpanOptions {
  readonly hash: Hash;
  /** Whether prompts and completions are included. */
  readonly content: boolean;
}

type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

interface Made {
  readonly id: string;
  readonly name: string;
  readonly kind: Span["kind"];
  readonly parent?: string;
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  readonly failed?: string | null;
}

const TRACE_DIGITS = 32;
const SPAN_DIGITS = 16;
/** The most characters of one prompt or one completion. */
const LONGEST_CONTENT = 16_384;
const PROVIDER = "openai";

/** The span of a run that has ended. It is sent once, with the segment that contains its last rollout. */
export function runSpan({ spec, ended }: SegmentTrace, { hash }: SpanOptions): Span | null {
  if (ended === null) return null;
  return spanOf(spec.run_id, hash, {
    ...{ id: spec.run_id, name: `run ${spec.environment.id}`, kind: 1, start: spec.created_at, end: ended.at },
    failed: ended.status === "failed" ? (ended.error ?? "failed") : null,
    attributes: {
      ...runAttributes({ spec, ended }),
      "gen_ai.request.model": spec.model,
      "rollcall.run.status": ended.status,
    },
  });
}

/** The spans of one rollout. `trajectory`: null if it left none. */
export function rolloutSpans(
  trace: SegmentTrace,
  entry: RolloutEntry,
  trajectory: Trajectory | null,
  options: SpanOptions,
): Span[] {
  const { spec } = trace;
  const end = entry.ended_at ?? entry.started_at ?? spec.created_at;
  const start = entry.started_at ?? end;
  const made: Made = {
    ...{ id: entry.id, name: `invoke_agent ${spec.environment.id}`, kind: 1, parent: spec.run_id, start, end },
    failed: entry.outcome === "failed" ? (entry.reason ?? "failed") : null,
    attributes: { ...runAttributes(trace), ...rolloutAttributes(entry), "gen_ai.request.model": spec.model },
  };
  const calls = trajectory === null ? [] : callsOf(trace, entry, trajectory, options);
  return [made, ...calls, ...judgesOf(entry, end)].map((one) => spanOf(spec.run_id, options.hash, one));
}

function callsOf({ spec }: SegmentTrace, { id }: RolloutEntry, trajectory: Trajectory, options: SpanOptions): Made[] {
  const chat = { name: `chat ${spec.model}`, kind: 3, parent: id } as const;
  const asked = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": PROVIDER,
    "gen_ai.request.model": spec.model,
    "gen_ai.request.max_tokens": spec.sampling.max_tokens,
    "gen_ai.request.temperature": spec.sampling.temperature,
    "gen_ai.conversation.id": id,
    "rollcall.rollout.id": id,
  };
  const turns = trajectory.turns.map((turn): Made => {
    const prompt = options.content ? promptOf(trajectory.turns, turn.index, turn.prompt) : [];
    const start = turn.sent_at ?? turn.answered_at - turn.latency_ms;
    const said = options.content ? contentOf(prompt, turn) : {};
    const attributes = { ...asked, ...turnAttributes(turn), ...said };
    return { ...chat, id: `${id}/${turn.index}`, start, end: turn.answered_at, attributes };
  });
  const failed = trajectory.failed_calls.map(({ turn, call, at, error, status }): Made => {
    const attributes = { ...asked, "rollcall.turn": turn, "rollcall.call": call, "http.response.status_code": status };
    const type = status === undefined ? error : String(status);
    return { ...chat, id: `${id}/${turn}/${call}`, start: at, end: at, attributes, failed: type };
  });
  return [...turns, ...failed];
}

/** Judges' calls have no times: they are placed at the end of their rollout. Cached judgements made no call. */
function judgesOf({ id, judgements }: RolloutEntry, end: number): Made[] {
  const asked = judgements === null ? [] : (JSON.parse(judgements) as JudgeCalls[]);
  return asked.flatMap(({ judge, model, key, pass, error, calls, usage, cached }): Made[] => {
    if (cached) return [];
    const attributes = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": PROVIDER,
      "gen_ai.request.model": model,
      "gen_ai.usage.input_tokens": usage.prompt_tokens,
      "gen_ai.usage.output_tokens": usage.completion_tokens,
      ...{ "rollcall.rollout.id": id, "rollcall.judge": judge, "rollcall.calls": calls },
    };
    const failed = error === null ? null : "judge";
    const place = { id: `${id}/judge/${judge}/${key}/${pass}`, parent: id, start: end, end };
    return [{ ...place, name: `chat ${model}`, kind: 3, attributes, failed }];
  });
}

function runAttributes({ spec }: Pick<SegmentTrace, "spec" | "ended">): Attributes {
  const { scope, run_id, environment } = spec;
  return {
    "rollcall.organization.id": scope.orgId,
    "rollcall.project.id": scope.projectId,
    "rollcall.run.id": run_id,
    "rollcall.environment": `${environment.id}@${environment.version}`,
  };
}

function rolloutAttributes(entry: RolloutEntry): Attributes {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.conversation.id": entry.id,
    "gen_ai.usage.input_tokens": entry.prompt_tokens,
    "gen_ai.usage.output_tokens": entry.completion_tokens,
    "rollcall.rollout.id": entry.id,
    "rollcall.rollout.group": entry.group_index,
    "rollcall.rollout.slot": entry.slot,
    "rollcall.rollout.attempt": entry.attempt,
    "rollcall.rollout.outcome": entry.outcome,
    "rollcall.rollout.reason": entry.reason,
    "rollcall.rollout.reward": entry.reward,
    "rollcall.rollout.stop_condition": entry.stop_condition,
    "rollcall.rollout.turns": entry.turns,
  };
}

function turnAttributes({ index, calls, usage, model, response_id, finish_reason }: StoredTurn): Attributes {
  return {
    "gen_ai.response.id": response_id,
    "gen_ai.response.model": model,
    "gen_ai.response.finish_reasons": [String(finish_reason)],
    "gen_ai.usage.input_tokens": usage?.prompt_tokens,
    "gen_ai.usage.output_tokens": usage?.completion_tokens,
    "rollcall.turn": index,
    "rollcall.calls": calls,
  };
}

function contentOf(prompt: Messages, { completion }: StoredTurn): Attributes {
  return {
    "gen_ai.input.messages": JSON.stringify(prompt).slice(0, LONGEST_CONTENT),
    "gen_ai.output.messages": JSON.stringify([completion]).slice(0, LONGEST_CONTENT),
  };
}

function spanOf(runId: string, hash: Hash, { id, parent, name, kind, start, end, attributes, failed }: Made): Span {
  const type = failed === null || failed === undefined ? {} : { "error.type": failed };
  return {
    traceId: hash(`trace/${runId}`).slice(0, TRACE_DIGITS),
    spanId: spanId(hash, id),
    ...(parent !== undefined && { parentSpanId: spanId(hash, parent) }),
    ...{ name, kind },
    startTimeUnixNano: nanoseconds(Math.min(start, end)),
    endTimeUnixNano: nanoseconds(end),
    attributes: attributesOf({ ...attributes, ...type }),
    ...("error.type" in type && { status: { code: 2 as const, message: type["error.type"] } }),
  };
}

function spanId(hash: Hash, id: string): string {
  return hash(`span/${id}`).slice(0, SPAN_DIGITS);
}

function attributesOf(attributes: Attributes): Span["attributes"] {
  return Object.entries(attributes).flatMap(([key, value]) => {
    return value === null || value === undefined ? [] : [{ key, value: valueOfAttribute(value) }];
  });
}

function valueOfAttribute(value: string | number | boolean | readonly string[]): Value {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } };
}

/** A number cannot hold this many nanoseconds exactly. */
function nanoseconds(milliseconds: number): string {
  return String(BigInt(Math.max(0, Math.round(milliseconds))) * 1_000_000n);
}
