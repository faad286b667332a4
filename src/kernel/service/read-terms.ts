/**
 * The terms of a filter over a run's rollouts. Reviews are in D1, and the run's object has none of them. So terms about
 * reviews are evaluated here, over all reviews of the run, and the object gets the rollouts that they select. All pages
 * and slices of one request use the same rollouts.
 */
import { type FilterTerm, parseFilter } from "../../contract/filter.ts";
import type { Scope } from "../../contract/scope.ts";
import { placeOfStoredId } from "../../core/ids.ts";
import type { ReviewMark } from "../kit/review-hooks.ts";
import { reviews } from "../kit/slice-hooks.ts";
import type { Place, RowTerm } from "../messages/list-wire.ts";

type ReviewTerm = Extract<FilterTerm, { readonly kind: "review" }>;

/** The terms of a filter that the schema has validated. Reads reviews only if a term is about them. */
export async function readTerms(
  { env, scope, id }: { readonly env: Env; readonly scope: Scope; readonly id: string },
  filter: string | undefined,
): Promise<readonly RowTerm[]> {
  const parsed = parseFilter(filter ?? "");
  if (!parsed.ok) throw new Error(`not a valid filter: ${parsed.error.message}`);
  const asked = parsed.terms.filter((term) => term.kind === "review");
  const others = parsed.terms.filter((term) => term.kind !== "review");
  if (asked.length === 0) return others;
  const { negated, rollouts } = selectReviewed(asked, await reviews().marksOf(env, scope, id));
  // At most `LIMITS.reviewsPerRun` ids, of rows of this run.
  const places = rollouts.map((rollout): Place => {
    const { group, slot, attempt } = placeOfStoredId(rollout);
    return [group, slot, attempt];
  });
  return [...others, { kind: "among", negated, places }];
}

/**
 * The rollouts for which all terms hold. `negated`: all rollouts but these, because the terms hold for a rollout without
 * reviews.
 */
export function selectReviewed(
  terms: readonly ReviewTerm[],
  marks: readonly ReviewMark[],
): { readonly negated: boolean; readonly rollouts: readonly string[] } {
  const holds = (given: readonly ReviewMark[]) => terms.every((term) => holdsFor(term, given) !== term.negated);
  const negated = holds([]);
  const byRollout = Map.groupBy(marks, ({ rollout_id }) => rollout_id);
  const rollouts = [...byRollout].flatMap(([rollout, given]) => (holds(given) === negated ? [] : [rollout]));
  return { negated, rollouts };
}

/** Whether one of a rollout's reviews has one of the values. `null`: none of them has any. */
function holdsFor(term: ReviewTerm, given: readonly ReviewMark[]): boolean {
  if (term.field === "reviewed") return term.values[0] === given.length > 0;
  const { field, values } = term;
  const present = given.flatMap((review) => {
    const value = field === "mark" ? review.mark : review.created_by;
    return value === null ? [] : [value];
  });
  return present.length === 0 ? values.includes(null) : present.some((value) => values.includes(value));
}
