/** From a number on a page to the rollouts behind it. */
import { Link } from "@tanstack/react-router";
import { printFilter, printName } from "../../../contract/filter.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { Histogram } from "../../../contract/rollout-list.ts";
import { countText } from "../../components/format.ts";
import type { Bin } from "../../components/histogram.tsx";
import { useFrozen } from "../../frozen.ts";

/** The attempts that count: what a report is made of. */
export const COUNTED = "superseded:false";

/** A word of a filter, in quotes where it needs them: `error:provider`. */
export function wordFilter(field: "error" | "stop" | "member" | "task" | "outcome", value: string): string {
  return printFilter([{ kind: "word", field, values: [value], negated: false }]);
}

/** The rollouts of these ids, and how many of the ids it has: a filter holds some ten. */
export function idFilter(ids: readonly string[]): { readonly filter: string; readonly n: number } {
  const filterOf = (values: readonly string[]) => printFilter([{ kind: "word", field: "id", values, negated: false }]);
  let n = Math.min(ids.length, LIMITS.filterValues);
  while (n > 1 && filterOf(ids.slice(0, n)).length > LIMITS.filterCharacters) n -= 1;
  return { filter: filterOf(ids.slice(0, n)), n };
}

/** A histogram as far as its bins go. */
type Binned = Pick<Histogram, "of" | "bins" | "whole">;

/** The rollouts of one bin: of whole numbers up to the one before its end; else the last bin holds its upper bound too. */
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

/** The rollouts that have a score of this name. */
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

/** "12 failed", a link unless there is none. */
export function CountLink({ run, n, what, filter }: { run: string; n: number; what: string; filter: string }) {
  const text = `${countText(n)} ${what}`;
  if (n === 0) return text;
  return (
    <RolloutsLink run={run} filter={`${filter} ${COUNTED}`.trim()}>
      {text}
    </RolloutsLink>
  );
}
