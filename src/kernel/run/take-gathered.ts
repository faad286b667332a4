/**
 * Calls of several callers that arrive in one. Reports, requests for money and scores are stored together, which is one
 * write of the run's state for all of them. If that fails, those of each caller are stored alone, so that an error of one
 * caller fails no other.
 */
import { messageOf } from "../../contract/errors.ts";
import { sizeOf } from "../../core/size.ts";
import type { GatheredCall, GatheredName, GatheredReply, GatheredResult } from "../messages/gathered.ts";
import type { RunRpc } from "../messages/rpc.ts";
import type { ScoringGroup } from "../messages/wire.ts";
import { REPLY_CHARACTERS } from "./gathering.ts";

/** What the run's object does for each call. Nothing is awaited, so all of it is committed together. */
export type GatheredMethods = {
  readonly [Name in GatheredName]: (...args: Parameters<RunRpc[Name]>) => GatheredResult<Name>;
};

/** One reply for each call, in order. */
export function takeGathered(calls: readonly GatheredCall[], run: GatheredMethods): GatheredReply[] {
  const replies = new Map<number, GatheredReply>();
  const reports = partsOf(calls, (call) => (call.method === "answered" ? call.args[0] : null));
  takeTogether(
    reports,
    (all) => run.answered(all),
    replies,
    (answers) => answers,
  );
  const asks = partsOf(calls, (call) => (call.method === "allow" ? call.args[0] : null));
  takeTogether(
    asks,
    (all) => run.allow(all),
    replies,
    (answers) => answers,
  );
  // Scores by judges end a claim as well: each of those calls is taken alone.
  const scores = partsOf(calls, (call) =>
    call.method === "scored" && call.args[2] === undefined ? [call.args] : null,
  );
  const score = (all: readonly Parameters<RunRpc["scored"]>[]) => {
    run.scored(
      all.flatMap(([members]) => members),
      all.flatMap(([, samples = []]) => samples),
    );
    return [];
  };
  takeTogether(scores, score, replies, () => undefined);
  let characters = 0;
  for (const [at, call] of calls.entries()) {
    if (replies.has(at)) continue;
    if (characters > REPLY_CHARACTERS) {
      replies.set(at, { later: true });
      continue;
    }
    const reply = replyOf(() => takeOne(call, run));
    characters += charactersOf(reply);
    replies.set(at, reply);
  }
  return calls.map((_, at) => replies.get(at) ?? { later: true });
}

interface Part<Item> {
  /** The number of the call. */
  readonly at: number;
  readonly items: readonly Item[];
}

function partsOf<Item>(
  calls: readonly GatheredCall[],
  itemsOf: (call: GatheredCall) => readonly Item[] | null,
): Part<Item>[] {
  return calls.flatMap((call, at) => {
    const items = itemsOf(call);
    return items === null ? [] : [{ at, items }];
  });
}

/** Takes the items of several calls together; if that throws, those of each call alone. `resultOf`: a call's answers. */
function takeTogether<Item, Answer>(
  parts: readonly Part<Item>[],
  take: (items: readonly Item[]) => readonly Answer[],
  replies: Map<number, GatheredReply>,
  resultOf: (answers: Answer[]) => GatheredResult,
): void {
  const [only, ...others] = parts;
  if (only === undefined) return;
  try {
    const answers = [...take(parts.flatMap(({ items }) => items))];
    for (const { at, items } of parts) replies.set(at, { done: resultOf(answers.splice(0, items.length)) });
  } catch (thrown) {
    if (others.length === 0) replies.set(only.at, failedWith(thrown));
    else for (const part of parts) takeTogether([part], take, replies, resultOf);
  }
}

function takeOne(call: GatheredCall, run: GatheredMethods): GatheredResult {
  switch (call.method) {
    case "admit":
      return run.admit(...call.args);
    case "answered":
      return run.answered(...call.args);
    case "allow":
      return run.allow(...call.args);
    case "scoringGroupsToScore":
      return run.scoringGroupsToScore(...call.args);
    case "scored":
      return run.scored(...call.args);
    case "requestJudgements":
      return run.requestJudgements(...call.args);
    case "takeJudging":
      return run.takeJudging(...call.args);
    case "judged":
      return run.judged(...call.args);
  }
}

function replyOf(take: () => GatheredResult): GatheredReply {
  try {
    return { done: take() };
  } catch (thrown) {
    return failedWith(thrown);
  }
}

function failedWith(thrown: unknown): GatheredReply {
  const name = thrown instanceof Error ? thrown.name : "Error";
  return { failed: { name, message: messageOf(thrown) } };
}

/** Trajectories and judgements of a result: the rest of it is small. */
function charactersOf(reply: GatheredReply): number {
  if (!("done" in reply) || reply.done === null || reply.done === undefined) return 0;
  const { done } = reply;
  if ("units" in done) return textsOf(done.units);
  const settled = "settled" in done ? sizeOf(done.settled) : 0;
  return settled + ("unit" in done ? textsOf([done.unit]) : 0);
}

function textsOf(scoringGroups: readonly ScoringGroup[]): number {
  return scoringGroups.flatMap(({ members }) => members).reduce((sum, { text }) => sum + (text?.length ?? 0), 0);
}
