/** Links from a number on a page to the rollouts that it counts. */
import { Link } from "@tanstack/react-router";
import { printFilter, printName } from "../../../contract/filter.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { Histogram } from "../../../contract/rollout-list.ts";
import { countText } from "../../components/format.ts";
import type { Bin } from "../../components/histogram.tsx";
import { useFrozen } from "../../frozen.ts";

/** The attempts that count, from which a report is made. */
export const COUNTED = "superseded:false";

/** A term of a filter, in quotes if necessary: `error:provider`. */
export function wordFilter(field: "error" | "stop" | "member" | "task" | "outcome", value: string): string {
  return printFilter([{ kind: "word", field, values: [value], negated: false }]);
}

/** A filter for rollouts by id, and how many of the ids it contains: a filter has space for about ten. */
export function idFilter(ids: readonly string[]): { readonly filter: string; readonly n: number } {
  const filterOf = (values: readonly string[]) => printFilter([{ kind: "word", field: "id", values, negated: false }]);
  let n = Math.min(ids.length, LIMITS.filterValues);
  while (n > 1 && filterOf(ids.slice(0, n)).length > LIMITS.filterCharacters) n -= 1;
  return { filter: filterOf(ids.slice(0, n)), n };
}

/** The parts of a histogram that define its bins. */
type Binned = Pick<Histogram, "of" | "bins" | "whole">;

/**
 * A filter for the rollouts of one bin. A bin of whole numbers ends one before its `to`; otherwise only the last bin
 * includes its upper bound.
 */
export function binFilter({ of, bins, whole }: Binned, bin: Pick<Bin, "from" | "to">): string {
  const { from, to } = whole ? { from: bin.from, to: Math.max(bin.from, bin.to - 1) } : bin;
  const upTo = whole || bin.to === bins.at(-1)?.to;
  const written = (value: number) => (of === "duration" ? seconds(value) : String(value));
  if (from === to) return `${of}=${written(from)} ${COUNTED}`;
  return `${of}>=${written(from)} ${of}${upTo ? "<=" : "<"}${written(to)} ${COUNTED}`;
}

/** A duration is written without an exponent. */
function seconds(value: number): string {
  const text = String(value);
  return /e/.test(text) ? value.toFixed(6) : text;
}

/** A filter for the rollouts that have a score of this name. */
export function scoredBy(metric: string): string {
  return `-${printName(metric)}:null`;
}

interface RolloutsLinkProps {
  readonly run: string;
  readonly filter: string;
  readonly sort?: string | undefined;
  readonly children: React.ReactNode;
}

export function RolloutsLink({ run, filter, sort, children }: RolloutsLinkProps) {
  if (useFrozen()) return children;
  return (
    <Link to="/runs/$id/rollouts" params={{ id: run }} search={{ filter: filter || undefined, sort } as never}>
      {children}
    </Link>
  );
}

/** "12 failed", as a link unless the count is 0. */
export function CountLink({ run, n, what, filter }: { run: string; n: number; what: string; filter: string }) {
  const text = `${countText(n)} ${what}`;
  if (n === 0) return text;
  return (
    <RolloutsLink run={run} filter={`${filter} ${COUNTED}`.trim()}>
      {text}
    </RolloutsLink>
  );
}

/** Links to the rollouts in which a call of a tool failed, by their ids, as many as fit in a filter. */
export function FailingLink({ run, rollouts }: { readonly run: string; readonly rollouts: readonly string[] }) {
  if (rollouts.length === 0) return countText(0);
  const { filter, n } = idFilter(rollouts);
  return (
    <>
      {n < rollouts.length && `${countText(rollouts.length)}, `}
      <RolloutsLink run={run} filter={filter}>
        {n < rollouts.length ? `the first ${countText(n)}` : countText(n)}
      </RolloutsLink>
    </>
  );
}
