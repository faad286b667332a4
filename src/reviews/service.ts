/** Writes and deletes a person's review of a rollout, and compares a run's scores and judges with its reviews. */
import type { AgreementSummary, AgreementSummaryList, RunAgreement } from "../contract/agreement.ts";
import type { Judgement } from "../contract/judgement.ts";
import { LIMITS } from "../contract/limits.ts";
import type { ReviewValue } from "../contract/row-review.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import type { Rating } from "../core/statistics/kappa.ts";
import { databaseOf } from "../kernel/db/database.ts";
import type { Position } from "../kernel/db/page.ts";
import { getRun } from "../kernel/db/runs.ts";
import { minting } from "../kernel/kit/secrets.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { findRollout } from "../kernel/service/read-rollouts.ts";
import { notFound, placeOfId } from "../kernel/service/read-run.ts";
import { ComparedValues } from "./compare-values.ts";
import {
  countReviews,
  deleteReview,
  insertReview,
  listReviewValues,
  type NewReview,
  type ReviewValues,
  reviewViewOf,
  updateReview,
} from "./queries.ts";
import type { ReviewRequest, ReviewView } from "./wire.ts";

/** Reviews that one statement reads. */
const READ_AT_ONCE = 200;

/** Who reviews, and when (epoch milliseconds). */
export interface Reviewer {
  readonly who: string;
  readonly now: number;
}

/** Writes the caller's review, in place of an earlier one. The rollout itself stays as it is. */
export async function putReview(
  env: Env,
  scope: Scope,
  rolloutId: string,
  request: ReviewRequest,
  { who, now }: Reviewer,
): Promise<Result<ReviewView>> {
  const found = await findRollout(env, scope, rolloutId);
  if (!found.ok) return found;
  const { run, record } = found.value;
  if (record.entry.status !== "done") {
    return refuse("conflict", `${rolloutId} has not ended: review it after its end`, null);
  }
  const { reward, scores, judgements } = record.entry;
  const values = valuesOf(request, {
    reward,
    scores: JSON.parse(scores ?? "[]") as OwnValues["scores"],
    judgements: JSON.parse(judgements ?? "[]") as OwnValues["judgements"],
  });
  if (!values.ok) return values;
  const refused = refusalOf(request, values.value);
  if (refused !== null) return refused;
  const { mark, note, why } = request;
  const text = { mark, note, why, values: values.value, updated_at: now };
  const review: NewReview = {
    ...{ id: mintId("rev", minting(env, now)), run_id: run.id, rollout_id: rolloutId, created_by: who },
    ...{ ...text, created_at: now },
  };
  const kept = await insertReview(databaseOf(env), scope, review);
  if (kept === "inserted") return { ok: true, value: reviewViewOf(review) };
  const updated = await updateReview(databaseOf(env), scope, { rolloutId, who }, text);
  if (updated !== null) return { ok: true, value: reviewViewOf(updated) };
  return await whyNone(env, scope, run.id, rolloutId);
}

/** The run was deleted, or it or the rollout has the maximum number of reviews. */
async function whyNone(env: Env, scope: Scope, runId: string, rolloutId: string): Promise<Result<never>> {
  if ((await getRun(databaseOf(env), scope, runId)) === null) return notFound("rollout", rolloutId);
  return refuse(
    "conflict",
    `${rolloutId} already has ${LIMITS.reviewsPerRollout} reviews, or its run ${LIMITS.reviewsPerRun}, the maximum`,
    null,
  );
}

/** What the rollout has of its own. */
export interface OwnValues {
  readonly reward: number | null;
  readonly scores: readonly { readonly name: string; readonly score: number | null }[];
  readonly judgements: readonly Pick<Judgement, "judge" | "verdict">[];
}

/** The values of a review, each with the rollout's own. */
export function valuesOf(
  { reward, scores, judges }: Pick<ReviewRequest, "reward" | "scores" | "judges">,
  own: OwnValues,
): Result<ReviewValue[]> {
  const values: ReviewValue[] = [];
  if (reward !== null) values.push({ of: "reward", name: "reward", value: reward, given: own.reward });
  for (const [name, value] of Object.entries(scores)) {
    const score = own.scores.find((one) => one.name === name);
    if (score === undefined)
      return refuse("invalid_request", `scores.${name}: the rollout has no such score`, "scores");
    values.push({ of: "score", name, value, given: score.score });
  }
  for (const [name, value] of Object.entries(judges)) {
    const given = verdictOf(name, own.judgements);
    if (!given.ok) return given;
    const isOfKind = given.value === null || typeof given.value === typeof value;
    if (!isOfKind) {
      const kind = typeof given.value === "number" ? "a number" : "a label";
      return refuse("invalid_request", `judges.${name}: must be ${kind}, as the judge gave`, "judges");
    }
    values.push({ of: "judge", name, value, given: given.value });
  }
  return { ok: true, value: values };
}

/** The judge's value for the rollout; null if it gave no judgement. Refused if there is not one value to compare. */
function verdictOf(name: string, judgements: OwnValues["judgements"]): Result<Rating | null> {
  const asked = judgements.filter(({ judge }) => judge === name);
  const refusal = (why: string) => refuse("invalid_request", `judges.${name}: ${why}`, "judges");
  if (asked.length === 0) return refusal("the rollout was not judged by it");
  const verdicts = new Set(asked.map(({ verdict }) => verdict));
  if (verdicts.size > 1) return refusal("it gave several judgements that differ: give the score instead");
  const [verdict = null] = verdicts;
  if (verdict !== null && typeof verdict === "object") {
    return refusal("it compared the attempts of a group: give the score instead");
  }
  if (typeof verdict === "string" && verdict.length > LIMITS.reviewLabelCharacters) {
    const most = LIMITS.reviewLabelCharacters;
    return refusal(`its judgement has more than ${most} characters, so it is no label: give the score instead`);
  }
  return { ok: true, value: verdict };
}

function refusalOf({ mark, note, why }: ReviewRequest, values: readonly ReviewValue[]): Result<never> | null {
  if (mark === null && note === null && values.length === 0) {
    return refuse("invalid_request", "mark: a review needs a mark, a note or a value", "mark");
  }
  const [changed] = values.filter(({ value, given }) => value !== given);
  if (changed === undefined || why !== null) return null;
  const { of, name } = changed;
  const what = of === "reward" ? "the reward" : `the ${of} ${name}`;
  return refuse("invalid_request", `why: is required, because ${what} differs from the rollout's own`, "why");
}

/** Deletes the caller's own review. */
export async function removeReview(
  env: Env,
  scope: Scope,
  rolloutId: string,
  who: string,
): Promise<Result<{ object: "review"; id: string; deleted: true }>> {
  const id = await deleteReview(databaseOf(env), scope, rolloutId, who);
  if (id === null) return refuse("not_found", `you have no review of rollout ${rolloutId}`, "id");
  return { ok: true, value: { object: "review", id, deleted: true } };
}

/** The run of a rollout whose reviews are listed. */
export async function findReviewed(env: Env, scope: Scope, rolloutId: string): Promise<Result<{ runId: string }>> {
  const place = placeOfId(env, rolloutId);
  const record = place === null ? null : await getRun(databaseOf(env), scope, place.runId);
  return record === null ? notFound("rollout", rolloutId) : { ok: true, value: { runId: record.run.id } };
}

/** At most `LIMITS.reviewsPerRun` reviews are read, `READ_AT_ONCE` in a statement. */
export async function readAgreement(env: Env, scope: Scope, runId: string): Promise<Result<RunAgreement>> {
  const record = await getRun(databaseOf(env), scope, runId);
  if (record === null) return notFound("run", runId);
  const { report, spec } = record.run;
  const compared = new ComparedValues();
  compared.announce("reward", "reward");
  for (const name of Object.keys(report?.metrics ?? {})) compared.announce("score", name);
  for (const name of Object.keys(spec.judges ?? {})) compared.announce("judge", name);
  const marks = { good: 0, bad: 0, unsure: 0 };
  const rollouts = new Set<string>();
  const read = await readValues(env, scope, runId, ({ rollout_id, mark, values }) => {
    rollouts.add(rollout_id);
    if (mark !== null) marks[mark] += 1;
    compared.add(rollout_id, values);
  });
  return {
    ok: true,
    value: {
      ...{ object: "agreement", run_id: runId, reviews: read, rollouts: rollouts.size, marks },
      ...compared.result(),
    },
  };
}

/** Calls `each` with every review of the run. Returns how many there are. */
async function readValues(env: Env, scope: Scope, runId: string, each: (review: ReviewValues) => void) {
  let read = 0;
  for (let after: Position | null = null; ; ) {
    const page = await listReviewValues(databaseOf(env), scope, runId, { after, limit: READ_AT_ONCE, order: "asc" });
    page.forEach(each);
    read += page.length;
    after = page.at(-1) ?? null;
    if (page.length < READ_AT_ONCE || read >= LIMITS.reviewsPerRun) return read;
  }
}

/**
 * The agreement of several runs, in the order of the request, for those that have reviews. At most
 * `LIMITS.reviewsPerRun` reviews of all runs together are read: a run whose reviews are beyond that has `items` null.
 */
export async function readAgreements(env: Env, scope: Scope, runIds: readonly string[]): Promise<AgreementSummaryList> {
  const asked = [...new Set(runIds)];
  const counted = await countReviews(databaseOf(env), scope, asked);
  const counts = new Map(counted.map(({ run_id, reviews }) => [run_id, reviews]));
  const data: AgreementSummary[] = [];
  let left: number = LIMITS.reviewsPerRun;
  for (const run_id of asked) {
    const reviews = counts.get(run_id);
    if (reviews === undefined) continue;
    left -= reviews;
    const compared = left < 0 ? { items: null } : await readItems(env, scope, run_id);
    data.push({ object: "agreement_summary", run_id, reviews, ...compared });
  }
  const [first_id = null, last_id = null] = [data[0]?.run_id, data.at(-1)?.run_id];
  return { object: "list", data, first_id, last_id, has_more: false };
}

async function readItems(
  env: Env,
  scope: Scope,
  runId: string,
): Promise<Pick<AgreementSummary, "items" | "items_left_out">> {
  const compared = new ComparedValues();
  await readValues(env, scope, runId, ({ rollout_id, values }) => compared.add(rollout_id, values));
  const { items, ...left } = compared.result();
  return { items: items.map(({ people: _, disagreements: __, weights: ___, ...item }) => item), ...left };
}
