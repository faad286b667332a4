/** Compares the values that people gave with those of the rollouts, for the reward, each score and each judge. */
import type { AgreementItem, ReviewedKind, RunAgreement } from "../contract/agreement.ts";
import { LIMITS } from "../contract/limits.ts";
import type { ReviewValue } from "../contract/row-review.ts";
import { isSameRating, kappaOf, type Rating } from "../core/statistics/kappa.ts";

interface Rated {
  /** The rollout's own; null if it has none. */
  readonly given: Rating | null;
  /** One for each reviewer that gave one. */
  readonly people: Rating[];
}

/** The values of one score or judge, by rollout. */
interface Compared {
  readonly of: ReviewedKind;
  readonly name: string;
  readonly rollouts: Map<string, Rated>;
}

/** The names of scores may come from an agent, so there may be any number. As many more are counted as left out. */
const MOST_ITEMS = 200;

/** Collects reviews one at a time. What was announced is listed even if nobody gave a value for it. */
export class ComparedValues {
  readonly #items = new Map<string, Compared>();
  readonly #leftOut = new Set<string>();

  announce(of: ReviewedKind, name: string): void {
    this.#item(of, name);
  }

  add(rolloutId: string, values: readonly ReviewValue[]): void {
    for (const { of, name, value, given } of values) {
      const item = this.#item(of, name);
      if (item === null) continue;
      const { rollouts } = item;
      const rated = rollouts.get(rolloutId);
      if (rated === undefined) rollouts.set(rolloutId, { given, people: [value] });
      else rated.people.push(value);
    }
  }

  result(): Pick<RunAgreement, "items" | "items_left_out"> {
    const left = this.#leftOut.size;
    return { items: this.#sorted(), ...(left > 0 && { items_left_out: left }) };
  }

  /** The lowest κ first, then the items without κ. */
  #sorted(): AgreementItem[] {
    return Array.from(this.#items.values(), itemOf).sort((one, other) => {
      return (one.kappa ?? Number.POSITIVE_INFINITY) - (other.kappa ?? Number.POSITIVE_INFINITY) || other.n - one.n;
    });
  }

  /** Null for one that is left out. */
  #item(of: ReviewedKind, name: string): Compared | null {
    const key = `${of} ${name}`;
    const known = this.#items.get(key);
    if (known !== undefined) return known;
    if (this.#items.size >= MOST_ITEMS) {
      if (this.#leftOut.size < MOST_ITEMS) this.#leftOut.add(key);
      return null;
    }
    const made = { of, name, rollouts: new Map<string, Rated>() };
    this.#items.set(key, made);
    return made;
  }
}

interface Judged {
  readonly rollout_id: string;
  readonly given: Rating;
  readonly people: Rating;
}

function itemOf({ of, name, rollouts }: Compared): AgreementItem {
  const judged: Judged[] = [];
  let undecided = 0;
  for (const [rollout_id, { given, people }] of rollouts) {
    const most = mostGiven(people);
    if (most === null) undecided += 1;
    else if (given !== null) judged.push({ rollout_id, given, people: most });
  }
  const { n, agreement, weights, kappa, ci95, reason } = kappaOf(judged.map((one) => [one.given, one.people]));
  return {
    ...{ of, name, n, agreement, weights, kappa, ci95, reason, undecided },
    people: amongPeople(rollouts.values()),
    disagreements: disagreementsIn(judged),
  };
}

/** The value that most people gave; null if two values have as many. */
function mostGiven(people: readonly Rating[]): Rating | null {
  const counts = countsOf(people).sort((one, other) => other.count - one.count);
  const [first, second] = counts;
  if (first === undefined || first.count === second?.count) return null;
  return first.value;
}

function countsOf(people: readonly Rating[]): { value: Rating; count: number }[] {
  const counts: { value: Rating; count: number }[] = [];
  for (const value of people) {
    const known = counts.find((one) => isSameRating(one.value, value));
    if (known === undefined) counts.push({ value, count: 1 });
    else known.count += 1;
  }
  return counts;
}

function amongPeople(rated: Iterable<Rated>): AgreementItem["people"] {
  const pairsOf = (n: number) => (n * (n - 1)) / 2;
  let [pairs, same] = [0, 0];
  for (const { people } of rated) {
    pairs += pairsOf(people.length);
    for (const { count } of countsOf(people)) same += pairsOf(count);
  }
  return { pairs, agreement: pairs === 0 ? null : same / pairs };
}

function disagreementsIn(judged: readonly Judged[]): Judged[] {
  const apart = judged.filter(({ given, people }) => !isSameRating(given, people));
  const size = ({ given, people }: Judged) => {
    return typeof given === "number" && typeof people === "number" ? Math.abs(given - people) : 0;
  };
  return apart.sort((one, other) => size(other) - size(one)).slice(0, LIMITS.disagreementsShown);
}
