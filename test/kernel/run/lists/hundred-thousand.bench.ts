/** `npm run bench:lists`: pages of a run of 100,000 rollouts, each read within a second, also the first time. */
import { expect, test } from "vitest";
import { parseSort } from "../../../../src/contract/filter.ts";
import type { ListCursor, RolloutSlice } from "../../../../src/kernel/messages/list-wire.ts";
import { type MadeUp, madeUpRun, rowTermsOf } from "./made-up-run.ts";

const ROLLOUTS = 100_000;
const PAGE = 101;
/** The first page of a kind stores its values. */
const PAGES = [
  ["", "dispatched"],
  ["reward<0.5", "-reward"],
  ["reward<0.5", "-reward"],
  ["turns>3 -truncated:true reward>0.99", "-tokens"],
  ["turns>3 -truncated:true reward>0.99", "-tokens"],
  ["outcome:failed", "-duration"],
  ["error:provider", "-duration"],
  ["", "-exact"],
  ["", "-exact"],
  ["exact=7", "reward"],
  ['"nothing says this"', "-reward"],
] as const;

/** Reads a page like the service: slice after slice. */
function readPage({ look }: MadeUp, filter: string, sortText: string) {
  const [terms, sort] = [rowTermsOf(filter), parseSort(sortText)];
  if (sort === null) throw new Error(`${filter} by ${sortText}`);
  const began = performance.now();
  let [rows, longest, slices] = [0, 0, 0];
  for (let after: ListCursor | null = null; rows < PAGE; slices += 1) {
    const slice_began = performance.now();
    const slice: RolloutSlice = look("rollouts", { terms, sort, after, limit: PAGE - rows });
    longest = Math.max(longest, performance.now() - slice_began);
    rows += slice.rows.length;
    if (slice.next === null) break;
    after = slice.next.after;
  }
  return {
    filter,
    sort: sortText,
    rows,
    slices,
    ms: Math.ceil(performance.now() - began),
    longest: Math.ceil(longest),
  };
}

function timed(what: string, ask: (slice: number) => { readonly slices: number }) {
  const began = performance.now();
  const { slices } = ask(0);
  for (let slice = 1; slice < slices; slice += 1) ask(slice);
  return { what, ms: Math.ceil(performance.now() - began) };
}

test("a page of 100,000 rollouts is read within a second, whatever is asked for", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const pages = PAGES.map(([filter, sort]) => readPage(run, filter, sort));
    const reward = { kind: "field", field: "reward" } as const;
    const sort = { by: "reward" as const, descending: true };
    const others = [
      timed("matched", (slice) => run.look("matches", { terms: [], slice })),
      timed("groups by reward", (slice) => run.look("groups", { terms: [], sort, after: null, slice, limit: 51 })),
      timed("histogram, its ends", (slice) => run.look("spread", { terms: [], of: reward, upto: ROLLOUTS, slice })),
    ];
    // biome-ignore lint/suspicious/noConsole: the purpose of this file is to print what was measured
    console.log([...pages, ...others].map((one) => JSON.stringify(one)).join("\n"));
    for (const { ms } of [...pages, ...others]) expect(ms).toBeLessThan(1000);
  }));
