/** Puts the results of models into tables, and orders them without claiming an order that chance may have made. Pure. */
import type { ModelResults } from "./environment-results.ts";
import { canonicalJson, type JsonObject } from "./json.ts";

export interface Ranked {
  readonly row: ModelResults;
  /** The first and the last place that its interval allows; null without a mean. */
  readonly places: readonly [number, number] | null;
}

/** Rows of the same version, code, arguments, judges and dataset: only these can be compared. */
export interface Comparable {
  readonly key: string;
  /** Whether the version has results of several digests. */
  readonly rebuilt: boolean;
  readonly rows: readonly Ranked[];
}

/** `rows`: the highest mean first. Those of `version` come first, then the others in the order of their best row. */
export function comparableResults(rows: readonly ModelResults[], version: string): Comparable[] {
  const groups = Map.groupBy(rows, keyOf);
  const digests = new Map([...Map.groupBy(rows, (row) => row.version)].map(([of, all]) => [of, digestsOf(all)]));
  const isRebuilt = ([first]: readonly ModelResults[]) => first !== undefined && (digests.get(first.version) ?? 0) > 1;
  const ranked = [...groups].map(([key, alike]) => ({ key, rebuilt: isRebuilt(alike), rows: rank(alike) }));
  const isShown = ({ rows: [first] }: Comparable) => first?.row.version === version;
  return ranked.sort((a, b) => Number(isShown(b)) - Number(isShown(a)));
}

function digestsOf(rows: readonly ModelResults[]): number {
  return new Set(rows.map(({ digest }) => digest)).size;
}

function keyOf(row: ModelResults): string {
  const { version, digest, environment_args: args, judges, dataset, inline, measured, latest } = row;
  const known = args === null || judges === null ? { id: measured?.id ?? latest[0]?.id } : { args, judges };
  return canonicalJson([version, digest, dataset, inline, known as JsonObject]);
}

/** A place is certain only if the interval of no other row overlaps. */
function rank(rows: readonly ModelResults[]): Ranked[] {
  const intervals = rows.flatMap(({ measured }) => (measured === null ? [] : [intervalOf(measured)]));
  return rows.map((row) => {
    if (row.measured === null) return { row, places: null };
    const [low, high] = intervalOf(row.measured);
    const above = intervals.filter(([other]) => other > high).length;
    const below = intervals.filter(([, other]) => other < low).length;
    return { row, places: [1 + above, intervals.length - below] };
  });
}

/**
 * Without an interval nothing is certain: a single task has none. One of no width is none either: a few equal rewards do
 * not tell how much the next one differs.
 */
function intervalOf({ reward: { wilson95, ci95 } }: NonNullable<ModelResults["measured"]>): readonly [number, number] {
  const [low, high] = wilson95 ?? ci95 ?? [0, 0];
  return low === high ? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY] : [low, high];
}

/** With its `sha256:`. */
const DIGEST_CHARACTERS = 19;

/**
 * What the rows of a table have in common besides version and dataset: the digest if the version has several, arguments
 * and judges. The texts are foreign.
 */
export function settingsOf({ rows: [first], rebuilt }: Comparable): string[] {
  if (first === undefined) return [];
  const { digest, environment_args: args, judges } = first.row;
  return [
    ...(rebuilt ? [`code ${digest.slice(0, DIGEST_CHARACTERS)}`] : []),
    ...(args === null ? ["with long arguments"] : textsOf(args)),
    ...(judges === null ? ["with long settings of judges"] : judgeTexts(judges)),
  ];
}

function textsOf(settings: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(settings).length === 0 ? [] : [JSON.stringify(settings)];
}

function judgeTexts(judges: NonNullable<ModelResults["judges"]>): string[] {
  return Object.entries(judges).map(([name, { model, sampling }]) => {
    return [`judge ${name}: ${model}`, ...textsOf(sampling)].join(" ");
  });
}

/** "1", "1 to 3"; null without a mean. */
export function placeText(places: Ranked["places"]): string | null {
  if (places === null) return null;
  const [first, last] = places;
  return first === last ? String(first) : `${first} to ${last}`;
}

/** How many rollouts of a row have not ended. */
export function countOpen({ planned, scored, failed, unscored, cancelled }: ModelResults["rollouts"]): number {
  return Math.max(0, planned - scored - failed - unscored - cancelled);
}
