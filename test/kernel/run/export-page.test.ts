/** What one page of an export reads in a large run with generated rows. */
import { expect, test } from "vitest";
import { ExportQuery } from "../../../src/contract/export.ts";
import type { RunSpec } from "../../../src/kernel/messages/wire.ts";
import { exportPage } from "../../../src/kernel/run/export-page.ts";
import { countingRows } from "../counting-rows.ts";
import { byHand } from "../run-by-hand.ts";

interface Page {
  readonly ends: readonly (number | null)[][];
  readonly read: number;
  readonly statements: number;
}
/** SQL expressions of `seq`, which counts from 1 and is also the order of the ends. */
interface MadeUp {
  readonly rollouts: number;
  readonly group: string;
  readonly slot?: string;
  readonly said?: string;
  readonly reward: string;
}

/** All pages of an export of a run with such rows. */
function exported(made: MadeUp, query: object, given: Partial<RunSpec> = {}): Promise<Page[]> {
  return byHand(given, ({ store, spec, sql: real }) => {
    const { rollouts, group, slot = "0", said = "'the same'", reward } = made;
    real.exec(
      `insert into rollouts (seq, group_index, slot, attempt, id, status, outcome, ask_at, digest, said, reward, finish_seq)
       with recursive numbers (seq) as (select 1 union all select seq + 1 from numbers where seq < ?)
       select seq, ${group}, ${slot}, 0, 'ro_' || seq, 'done', 'scored', 0, 'd', ${said}, ${reward}, seq from numbers`,
      rollouts,
    );
    store.saveHead({ ...store.head(), dispatched: rollouts, finished: rollouts });
    const { sql, rows } = countingRows(real);
    const pages: Page[] = [];
    for (let after: string | undefined; ; ) {
      const asked = ExportQuery.parse({ ...query, ...(after !== undefined && { after }) });
      const { items, next } = exportPage(store, spec, sql, asked);
      const { read, statements } = rows();
      pages.push({ ends: items.map((item) => item.map(({ entry }) => entry.finish_seq)), read, statements });
      if (next === null) return pages;
      after = next;
    }
  });
}

const endsOf = (pages: readonly Page[]) => pages.flatMap(({ ends }) => ends);
const most = (pages: readonly Page[], of: "read" | "statements") => Math.max(...pages.map((page) => page[of]));

/** How many rows the first page of a filter may read: it also creates the index. */
const ROWS = 80_000;

test("rollouts that all have the same text are read once, and not once for each other", async () => {
  const pages = await exported(
    { rollouts: 12_000, group: "seq", reward: "seq > 8000" },
    { dedupe: "true", min_reward: 0.5 },
  );
  expect(endsOf(pages)).toEqual([[8001]]);
  expect(most(pages, "read")).toBeLessThan(ROWS);
});

test("a page may end among rows with the same text, and the next page reads on there", async () => {
  const pages = await exported(
    { rollouts: 50_000, group: "seq", reward: "seq > 40000", said: "seq % 2" },
    { dedupe: "true", min_reward: 0.5, format: "verifiers" },
  );
  expect(endsOf(pages)).toEqual([[40_001], [40_002]]);
  expect(pages.length).toBeGreaterThan(3);
  expect(most(pages.slice(1), "read")).toBeLessThan(ROWS);
});

test("the best of a group is found by reading the group once, and not once for each member", async () => {
  const pages = await exported(
    { rollouts: 10_240, group: "(seq - 1) / 1024", slot: "(seq - 1) % 1024", reward: "(seq - 1) % 1024" },
    { best_of_group: "true", dedupe: "true" },
    { rollouts_per_example: 1024, num_examples: 10 },
  );
  expect(endsOf(pages)).toEqual([[1024]]);
  expect(most(pages, "read")).toBeLessThan(ROWS);
});

test("groups without a pair need no statement each", async () => {
  const pages = await exported({ rollouts: 12_000, group: "seq", reward: "1" }, { format: "dpo" });
  expect(endsOf(pages)).toEqual([]);
  expect(most(pages, "statements")).toBeLessThan(10);
  expect(most(pages, "read")).toBeLessThan(ROWS);
});

test("pairs of thousands of groups arrive page by page, and none is missing or repeated", async () => {
  const pages = await exported(
    { rollouts: 48_000, group: "(seq - 1) / 4", slot: "seq % 4", reward: "seq % 2 + seq % 4", said: "seq" },
    { format: "dpo", dedupe: "true", min_reward: 4 },
    { rollouts_per_example: 4, num_examples: 12_000 },
  );
  const pairs = endsOf(pages);
  expect(pairs.length).toBe(12_000);
  expect(new Set(pairs.flat()).size).toBe(24_000);
  expect(most(pages.slice(1), "read")).toBeLessThan(ROWS);
});
