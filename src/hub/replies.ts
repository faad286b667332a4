/**
 * Reads what an isolate answers. Its code may be malicious, so nothing of an answer is trusted.
 *
 * Invariants. A reply is measured before it is parsed, and parsed once. Limits are those of code in the platform's own
 * isolate, if it has one. A reply that breaks them, or that its call cannot have, throws EnvError with the path in it.
 */
import * as z from "zod";
import {
  EnvError,
  environmentFailure,
  firstErrors,
  messageOf,
  type SerializedError,
  serializeError,
  shortError,
  UNSCORED_CAUSES,
} from "../contract/errors.ts";
import { findNonJson, findOddity, isRecord, type Json, type JsonObject, membersOf } from "../contract/json.ts";
import { LIMITS } from "../contract/limits.ts";
import { Messages } from "../contract/messages.ts";
import { Count, MaybeNumber } from "../contract/primitives.ts";
import { Sampling } from "../contract/sampling.ts";
import { shortText } from "../contract/shown-text.ts";
import type { Trajectory } from "../contract/trajectory.ts";
import type { Need } from "../core/environments/contract.ts";
import { formatPath } from "../core/field-path.ts";
import type {
  ArgumentsFault,
  EnvironmentDescription,
  GroupToScore,
  LoadableEnvironment,
  OfferedTools,
  Performed,
  TaskReply,
} from "../core/protocol/environment-code.ts";
import { messagesBefore, type ServedScores } from "../core/protocol/served.ts";
import { advance, type Event, type Rollout } from "../core/rollout/rollout.ts";
import type { JudgeAsk } from "../core/rubrics/judges.ts";
import { endedWell, NOT_SCORED, type ScoreRecord, storable } from "../core/rubrics/score.ts";
import { holdsMore, listOf } from "../core/schema/bounded-lists.ts";
import { countJson } from "../core/schema/json-counts.ts";
import { charactersOf, exceedsUtf8 } from "../core/size.ts";

/** Levels of lists and objects in a reply, as in a request. */
const DEEPEST = 100;
/** A call performs at most the effects between two model calls: it sets up, replies or stops, and closes. */
const MOST_PERFORMED = 3;
const MOST_NEEDS = 100;
const ADDRESS_CHARACTERS = 2048;
const PATH_SEGMENTS = 100;
/** Errors, names, labels: more than any honest reply has, and few enough to be checked one by one. */
const LIST_ITEMS = 10_000;

const Name = z.string().min(1).max(LIMITS.nameCharacters);
const Message = z.string().transform((text) => shortText(text, LIMITS.errorCharacters));
/** What is in an object of a reply is JSON. */
const AnyObject = z.custom<JsonObject>(isRecord, "is not an object");
const AnyJson = z.custom<Json>((value) => value !== undefined, "is required");

const Failed = z
  .object({
    error: z.string(),
    message: z.string(),
    error_chain_str: z.string(),
    error_chain_repr: z.string(),
    retryable: z.boolean(),
  })
  .transform(shortError);

const MessageList = z
  .custom<unknown>((value) => !holdsMore(value, LIMITS.taskRowValues), `has more than ${LIMITS.taskRowValues} values`)
  .pipe(Messages);

const Tool = z.object({
  type: z.literal("function"),
  function: z
    .object({ name: Name, description: z.string(), parameters: AnyObject, strict: z.boolean().optional() })
    .transform(({ strict, ...tool }) => ({ ...tool, ...(strict !== undefined && { strict }) })),
});
const Tools = z.union([listOf(Tool, LIMITS.isolateTools), Failed]);

const Replied = z
  .object({
    type: z.literal("replied"),
    prompt: z.object({ keep: Count, append: MessageList }),
    state: AnyObject,
    final_env_response: MessageList.nullable(),
    tool_failed: listOf(z.boolean().nullable(), LIMITS.toolCallsPerReply).optional(),
  })
  .transform(({ tool_failed, ...event }) => ({ ...event, ...(tool_failed && { tool_failed }) }));
const Closed = z.object({
  type: z.literal("closed"),
  state: AnyObject,
  error: Failed.nullable(),
  cleanup_errors: listOf(Failed, LIST_ITEMS),
});
const ServedEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("set_up"), state: AnyObject }),
  z.object({ type: z.literal("stopped"), condition: Name, state: AnyObject }),
  Replied,
  z.object({ type: z.enum(["prompt_too_long", "timed_out"]) }),
  z.object({ type: z.literal("failed"), error: Failed }),
  Closed,
]);
const Effects = listOf(z.object({ event: ServedEvent, tools: Tools.nullable() }), MOST_PERFORMED);

const NeedText = z.custom<Need>(
  (need) =>
    typeof need === "string" && need.length <= ADDRESS_CHARACTERS && /^(sql$|fetch$|fetch:.|secret:.)/.test(need),
  "is not a need",
);
const Needs = listOf(NeedText, MOST_NEEDS);
const Dataset = z.object({
  kind: z.enum(["uploaded", "rows", "generated"]),
  length: Count.nullable(),
  fault: Message.nullable(),
  row: AnyObject,
});
const Player = z.object({
  member: Name.nullable(),
  sampling: Sampling,
  maxTurns: z.int(),
  maxSeqLen: Count.nullable(),
  timeoutMs: z.number().positive().nullable(),
  rows: z
    .object({ first: Count, step: Count.min(1), length: Count.nullable() })
    .nullable()
    .exactOptional(),
});
const Description = z.object({
  needs: Needs,
  forkable: z.boolean(),
  scores: listOf(z.object({ name: Name, weight: z.number(), group: z.boolean() }), LIST_ITEMS),
  judges: listOf(Name, LIST_ITEMS),
  judgements: z.record(Name, listOf(z.string().max(LIMITS.judgementCharacters), LIST_ITEMS)).exactOptional(),
  maxReward: z.number().nullable().exactOptional(),
  players: listOf(Player, LIMITS.groupMembers),
  dataset: Dataset,
  evalDataset: Dataset.nullable(),
});
const Outline = z.object({ args: AnyObject, needs: Needs });
const Fault = z
  .object({
    kind: z.enum(["unknown", "missing", "invalid"]),
    path: listOf(z.union([Count, z.string().max(LIMITS.nameCharacters)]), PATH_SEGMENTS),
    message: Message.nullable(),
  })
  .nullable();

const RowFaultReply = z.object({
  fault: z.object({ column: z.string().max(LIMITS.nameCharacters), message: Message }),
});
const Task = z.object({
  row: AnyObject,
  task: z.object({
    example_id: Count,
    task: AnyObject,
    prompt: MessageList,
    answer: z.string(),
    info: AnyJson,
  }),
  member: Name.nullable(),
});

const Range = z.tuple([z.number(), z.number()]);
/** Compared, and not parsed: its key is a hash of what was asked. */
const AskedMessages = z.custom<Messages>((value) => MessageList.safeParse(value).success, "is not a list of messages");
const Ask = z.object({
  key: z.string(),
  rollout_id: z.string().nullable(),
  judge: z.string(),
  messages: AskedMessages,
  menu: z.discriminatedUnion("kind", [
    z.object({ kind: z.enum(["text", "cosine"]) }),
    z.object({ kind: z.literal("label"), labels: listOf(z.string(), LIST_ITEMS) }),
    z.object({ kind: z.literal("number"), range: Range }),
    z.object({ kind: z.literal("scores"), ids: listOf(z.string(), LIST_ITEMS), range: Range }),
  ]),
  sampling: z.custom<Sampling>((value) => Sampling.safeParse(value).success, "is not a list of sampling options"),
  pass: Count,
  left_out: Count,
  seed: MaybeNumber,
});
const Record = z.object({
  rollout_id: z.string(),
  reward: MaybeNumber,
  scores: listOf(z.object({ name: Name, score: MaybeNumber, weight: z.number() }), LIST_ITEMS),
  scoring_errors: listOf(
    z.object({
      function: z.string().transform((name) => shortText(name, LIMITS.nameCharacters)),
      error: Message,
      retryable: z.boolean(),
    }),
    LIST_ITEMS,
  ),
  unscored: z.enum(UNSCORED_CAUSES).nullable(),
  steps: listOf(z.object({ reward: MaybeNumber, advantage: MaybeNumber }), LIMITS.taskRowValues).optional(),
});
const Scores = z.object({
  records: listOf(Record, LIMITS.groupSize),
  pending: listOf(Ask, LIMITS.groupSize * LIMITS.judgeAsksPerRollout),
  /** Not always whole: some work is counted as a share of a length. */
  steps: z.number().nonnegative(),
});

export function readOutline(reply: unknown): Pick<LoadableEnvironment, "args" | "needs"> {
  return parse(Outline, reply, LIMITS.isolateDescriptionCharacters);
}

export function readFault(reply: unknown): ArgumentsFault | null {
  return parse(Fault, reply);
}

/** `protocol`: the one that the deployment speaks. */
export function readDescription(reply: unknown, protocol: EnvironmentDescription["protocol"]): EnvironmentDescription {
  const given = jsonIn(reply, LIMITS.isolateDescriptionCharacters);
  const spoken = isRecord(given) ? given["protocol"] : null;
  if (spoken !== protocol) {
    const theirs = shortText(JSON.stringify(spoken ?? null), LIMITS.nameCharacters);
    throw new EnvError(`its code speaks protocol ${theirs}, and this deployment speaks ${protocol}`);
  }
  const description = checked(Description, given);
  if (description.players.length === 0) throw refused("players", "has no player");
  // What an isolate holds goes with it.
  return { ...description, protocol, tearsDown: false };
}

/** `index`: of the requested row. */
export function readTask(reply: unknown, index: number, { players }: EnvironmentDescription): TaskReply {
  const given = jsonIn(reply, LIMITS.isolateReplyCharacters);
  if (isRecord(given) && "fault" in given) return { fault: { ...checked(RowFaultReply, given).fault, index } };
  const made = checked(Task, given);
  for (const [place, value] of Object.entries({ row: made.row, ...made.task })) {
    if (exceedsUtf8(JSON.stringify(value), LIMITS.rowBytes)) {
      throw refused(place, `is more than ${LIMITS.rowBytes} bytes as JSON, the maximum of a row`);
    }
  }
  if (!players.some(({ member }) => member === made.member)) throw refused("member", "is not one of its environments");
  return made;
}

export function readTools(reply: unknown): OfferedTools {
  return parse(Tools, reply);
}

export function readError(reply: unknown): SerializedError | null {
  return parse(Failed.nullable(), reply);
}

/** Times and kinds of failure are the platform's. `at`: epoch milliseconds. */
export function readPerformed(reply: unknown, rollout: Rollout, at: number): readonly Performed[] {
  const performed: Performed[] = [];
  let before = rollout;
  for (const [index, { event: served, tools }] of parse(Effects, reply).entries()) {
    const event = eventOf(served, before, at);
    const after = advance(before, event);
    if (after === before) throw refused(`[${index}].event`, `${event.type} does not follow ${before.phase}`);
    // If the whole reply is small, so is a state in it.
    if ("state" in event && String(reply).length * 3 > LIMITS.stateBytes) checkState(event.state, index);
    performed.push({ event, tools });
    before = after;
  }
  if (performed.length === 0) throw refused("", "performed nothing");
  return performed;
}

function checkState(state: JsonObject, index: number): void {
  if (!exceedsUtf8(JSON.stringify(state), LIMITS.stateBytes)) return;
  throw refused(`[${index}].event.state`, `is more than ${LIMITS.stateBytes} bytes as JSON, the maximum`);
}

function eventOf(event: z.infer<typeof ServedEvent>, rollout: Rollout, at: number): Event {
  switch (event.type) {
    case "replied": {
      const { keep, append } = event.prompt;
      return { ...event, prompt: [...messagesBefore(rollout).slice(0, keep), ...append] };
    }
    case "failed":
      return { ...event, failure: environmentFailure(event.error) };
    case "closed":
      return { ...event, cleanup_errors: firstErrors(event.cleanup_errors, moreFailed), at };
    default:
      return event;
  }
}

function moreFailed(count: number): SerializedError {
  return serializeError(new EnvError(`${count} more handlers failed`));
}

/** What the reply to a call for scores is compared with. `hash` as in `ScoringHost`. */
export interface AskedToScore extends Pick<GroupToScore, "members" | "judges"> {
  readonly description: Pick<EnvironmentDescription, "scores">;
  readonly hash: (text: string) => string;
}

export function readScores(reply: unknown, asked: AskedToScore): ServedScores {
  const { records, pending, steps } = parse(Scores, reply);
  const { members, description } = asked;
  if (records.length !== members.length) {
    throw refused("records", `are ${records.length} for a group of ${members.length}`);
  }
  const names = new Set(description.scores.map(({ name }) => name));
  const whole = members.map((member, at) => recordOf(records[at], member, { names, at }));
  const characters = checkAsks(pending, asked);
  return { records: whole, pending, characters, steps };
}

interface RecordPlace {
  readonly names: ReadonlySet<string>;
  readonly at: number;
}

function recordOf(
  given: z.infer<typeof Record> | undefined,
  member: Trajectory,
  { names, at }: RecordPlace,
): ScoreRecord {
  const { rollout_id } = member;
  const where = `records[${at}]`;
  if (given?.rollout_id !== rollout_id) throw refused(`${where}.rollout_id`, `is not ${rollout_id}`);
  // An error never becomes a score.
  if (!endedWell(member)) return { rollout_id, ...NOT_SCORED };
  const { steps, ...record } = given;
  const unknown = record.scores.find(({ name }) => !names.has(name));
  if (unknown !== undefined)
    throw refused(`${where}.scores`, `${JSON.stringify(unknown.name)} is not one of its scores`);
  if (new Set(record.scores.map(({ name }) => name)).size < record.scores.length) {
    throw refused(`${where}.scores`, "has a name twice");
  }
  if ((record.reward === null) !== (record.unscored !== null)) {
    throw refused(`${where}.reward`, "must be null if `unscored` is set, and only then");
  }
  if (steps !== undefined && steps.length !== member.turns.length) {
    throw refused(`${where}.steps`, `are ${steps.length} for ${member.turns.length} turns`);
  }
  return storable({ ...record, ...(steps && { steps }) });
}

/** Returns their size in UTF-16 units. */
function checkAsks(pending: readonly JudgeAsk[], { members, judges, hash }: AskedToScore): number {
  const most = LIMITS.judgeAsksPerRollout * members.length;
  const known = Object.keys(judges?.known ?? {}).length;
  if (pending.length > 0 && known + pending.length > most) throw refused("pending", `are more than ${most} questions`);
  const ids = new Set<string | null>([null, ...members.map(({ rollout_id }) => rollout_id)]);
  let characters = 0;
  for (const [at, { key, judge, rollout_id, messages, menu, sampling, pass }] of pending.entries()) {
    const where = `pending[${at}]`;
    if (judges?.named.includes(judge) !== true) throw refused(`${where}.judge`, "is not one of the run's judges");
    if (!ids.has(rollout_id)) throw refused(`${where}.rollout_id`, "is not in the group");
    // Judgements of a project are found by it.
    if (key !== hash(JSON.stringify([judge, messages, menu, sampling, pass]))) {
      throw refused(`${where}.key`, "is not the hash of its question");
    }
    const size = charactersOf(messages);
    characters += size;
    if (size > LIMITS.askCharacters)
      throw refused(`${where}.messages`, `have more than ${LIMITS.askCharacters} characters`);
  }
  const together = LIMITS.scoringGroupAskCharacters;
  if (pending.length > 1 && characters > together) throw refused("pending", `have more than ${together} characters`);
  return characters;
}

function parse<T>(schema: z.ZodType<T>, reply: unknown, most: number = LIMITS.isolateReplyCharacters): T {
  return checked(schema, jsonIn(reply, most));
}

function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw refused(formatPath(issue?.path ?? []), issue?.message ?? "");
}

/** The value of a text, which is JSON and nothing else. */
function jsonIn(reply: unknown, most: number): unknown {
  if (typeof reply !== "string") throw refused("", `is not a text (${typeof reply})`);
  if (reply.length > most) throw refused("", `has ${reply.length} characters; the maximum is ${most}`);
  // A text has fewer values than characters.
  const { isolateReplyValues: values } = LIMITS;
  if (reply.length > values && countJson(reply).values > values) throw refused("", `has more than ${values} values`);
  const value = jsonOf(reply);
  if (isPlain(value, 0)) return value;
  const odd = findOddity(value, "");
  if (odd !== null) throw refused(odd.path, odd.message);
  const bad = findNonJson(value, "");
  throw refused(bad?.path ?? "", `JSON cannot represent ${bad?.found}`);
}

function jsonOf(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw refused("", `is not JSON: ${messageOf(thrown)}`);
  }
}

/** A number in JSON may be too large, and `__proto__` may be a name. */
function isPlain(value: unknown, depth: number): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  if (depth > DEEPEST || Object.hasOwn(value, "__proto__")) return false;
  return membersOf(value).every((member) => isPlain(member, depth + 1));
}

function refused(path: string, what: string): EnvError {
  const where = path === "" ? "" : ` ${shortText(path.replace(/^\./, ""), LIMITS.nameCharacters)}:`;
  return new EnvError(`the reply of its isolate:${where} ${shortText(what, LIMITS.errorCharacters)}`);
}
