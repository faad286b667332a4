/** Assigns the costs of a scoring group's judgements to its rollouts as they end: each judgement to one, once. */

import { type Judgement, sumOfCosts, tokenCost } from "../../../contract/judgement.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { JudgeResult } from "../../../core/rubrics/judges.ts";
import type { RolloutEntry } from "../../messages/run-records.ts";
import type { RunSpec } from "../../messages/wire.ts";
import type { JudgedTokens } from "../charges.ts";
import type { JudgementEntry } from "../judging-store.ts";
import type { RunStore } from "../store.ts";
import { dropScoringGroup, withScoringGroupSpending } from "./cap.ts";

/**
 * The columns of an ending rollout: its own judgements, and those about its whole group if it is the first to end.
 * These judgements are then deleted, and after its last member the scoring group waits for no judge.
 */
export function chargeJudges(
  store: RunStore,
  row: RolloutEntry,
): { readonly columns: Partial<RolloutEntry>; readonly judged: readonly JudgedTokens[] } {
  const spec = store.spec();
  const none = { columns: {}, judged: [] };
  if (spec?.judges === undefined) return none;
  const scoringGroup = spec.whole_groups ? row.group_index : row.seq;
  const others = spec.whole_groups ? store.group(scoringGroup) : [];
  const last = !others.some(({ seq, status }) => seq !== row.seq && status === "scoring");
  const spending = last ? withScoringGroupSpending(row, dropScoringGroup(store, scoringGroup)) : {};
  const entries = store.judging.takeJudgements(scoringGroup, row.id);
  if (entries.length === 0) return { columns: spending, judged: [] };
  const sum = (of: (entry: JudgementEntry) => number) => entries.reduce((total, entry) => total + of(entry), 0);
  const columns = {
    ...spending,
    judge_calls: sum(({ calls }) => calls),
    judge_prompt_tokens: sum(({ prompt_tokens }) => prompt_tokens),
    judge_completion_tokens: sum(({ completion_tokens }) => completion_tokens),
    judge_micros: sumOfCosts(entries.map((entry) => costOf(spec, entry))),
    judgements: listText(entries.map((entry) => judgementOf(spec, entry))),
  };
  return { columns, judged: entries };
}

/** 0 if the judge was not called or the call was never answered. */
function costOf({ judges }: RunSpec, entry: JudgementEntry): number | null {
  if (entry.calls === 0) return 0;
  return entry.unmetered > 0 ? null : tokenCost(judges?.[entry.judge]?.prices, entry);
}

/** UTF-16 units: half a row, at 3 bytes each in UTF-8. */
const JUDGEMENTS_CHARACTERS = Math.floor(LIMITS.rowBytes / 6);

/**
 * As JSON, the first ones that fit, then the replies that fit beside them: a row that is too large could not be written,
 * so its rollout would never end.
 */
function listText(judgements: readonly Judgement[]): string {
  let left = JUDGEMENTS_CHARACTERS;
  const fits = (value: object) => {
    left -= JSON.stringify(value).length + 1;
    return left > 0;
  };
  const fitting = judgements.filter((judgement) => fits({ ...judgement, reply: undefined }));
  return JSON.stringify(fitting.map((one) => (fits({ reply: one.reply }) ? one : { ...one, reply: undefined })));
}

function judgementOf(spec: RunSpec, entry: JudgementEntry): Judgement {
  const { judge, pass, seed, left_out, cached, calls, prompt_tokens, completion_tokens, cached_tokens } = entry;
  const { value, ...said }: JudgeResult =
    entry.verdict === null
      ? { value: null, error: "it was not waited for", retryable: true }
      : (JSON.parse(entry.verdict) as JudgeResult);
  return {
    judge,
    model: spec.judges?.[judge]?.model ?? "",
    verdict: value,
    reason: "reason" in said ? said.reason : null,
    error: "error" in said ? said.error : null,
    ...(entry.reply !== null && { reply: entry.reply }),
    key: entry.key,
    pass,
    seed,
    left_out,
    cached: cached === 1,
    calls,
    usage: {
      ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
      ...(cached_tokens > 0 && { cached_tokens }),
    },
    cost_micros: costOf(spec, entry),
  };
}
