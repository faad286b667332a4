/** Pages of rollouts whose judgements together are larger than a call between objects may be. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { ExportQuery } from "../../../src/contract/export.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { RunObject } from "../../../src/index.ts";
import { finishedPage } from "../../../src/kernel/run/pages.ts";
import { JUDGED_COLUMNS, PAGE_COLUMNS } from "../../../src/kernel/run/schema.ts";
import { traceOf } from "../../../src/kernel/run/sources.ts";
import { inside } from "../platform.ts";
import { byHand, Hand } from "../run-by-hand.ts";

const ROLLOUTS = LIMITS.resultsPerPage;
const REPLY = "x".repeat(LIMITS.judgeReplyCharacters);
const CALLS = { judge: "default", model: "m", key: "k", pass: 0, error: null, calls: 1, cached: false };
const JUDGEMENTS = JSON.stringify(
  Array.from({ length: 10 }, () => ({ ...CALLS, verdict: "good", reason: "because", reply: REPLY })),
);
/** How many UTF-16 units the calls of one rollout's judges may have. */
const SMALL = 2000;

/** Each row has ten judgements with the longest reply: 40 MB in all. */
function addRows({ store, sql }: Hand): void {
  sql.exec(
    `insert into rollouts (seq, group_index, slot, attempt, id, status, outcome, ask_at, digest, reward, finish_seq, judgements)
     with recursive numbers (seq) as (select 1 union all select seq + 1 from numbers where seq < ?)
     select seq, seq, 0, 0, 'ro_' || seq, 'done', 'scored', 0, 'd', 1, seq, ? from numbers`,
    ROLLOUTS,
    JUDGEMENTS,
  );
  store.saveHead({ ...store.head(), dispatched: ROLLOUTS, finished: ROLLOUTS });
}

test("pages of results, exports and sources carry no judgements, so they fit into one call", async () => {
  const run_id = crypto.randomUUID();
  const run = env.RUN.getByName(run_id);
  await inside(run, RunObject, (_, { storage }) => addRows(new Hand(storage, { run_id })));
  const finished = await run.finished(0, ROLLOUTS, null);
  const rows = finished?.rows.map(({ entry }) => entry.judgements) ?? [];
  expect([rows.length, new Set(rows)]).toEqual([ROLLOUTS, new Set([null])]);
  const exported = await run.exportPage(ExportQuery.parse({ limit: ROLLOUTS }));
  const items = exported?.items.flat().map(({ entry }) => entry.judgements) ?? [];
  expect([items.length > 0, new Set(items)]).toEqual([true, new Set([null])]);
  const places = Array.from({ length: ROLLOUTS }, (_, at) => ({ group: at + 1, slot: 0, attempt: null }));
  const sources = await run.sources(places);
  expect(new Set(sources?.records.map((record) => record?.entry.judgements))).toEqual(new Set([null]));
  const alone = await run.rollout({ group: 1, slot: 0, attempt: 0 });
  expect(alone?.entry.judgements).toBe(JUDGEMENTS);
});

test("an audit of charges and a trace get the calls of the judges, without their texts", async () => {
  const run_id = crypto.randomUUID();
  const run = env.RUN.getByName(run_id);
  const trace = await inside(run, RunObject, (_, { storage }) => {
    const hand = new Hand(storage, { run_id });
    addRows(hand);
    const segment = hand.store.addSegment(1, LIMITS.segmentRollouts, 0);
    return traceOf(hand.store, hand.spec, segment)?.rollouts ?? [];
  });
  const finished = await run.finished(0, ROLLOUTS, null, true);
  const rows = finished?.rows.map(({ entry }) => entry) ?? [];
  expect([rows.length, trace.length]).toEqual([ROLLOUTS, LIMITS.segmentRollouts]);
  for (const { judgements } of [...rows.slice(0, 1), ...trace.slice(0, 1)]) {
    expect(JSON.parse(judgements ?? "")).toEqual(Array.from({ length: 10 }, () => CALLS));
    expect(judgements?.length).toBeLessThan(SMALL);
  }
});

test("a page is cut before the calls of its judges are too large for one call", async () => {
  const many = JSON.stringify([{ ...CALLS, error: "x".repeat(LIMITS.inlinePageBytes / 10) }]);
  const page = await byHand({}, (run) => {
    addRows(run);
    run.sql.exec("update rollouts set judgements = ? where seq <= 20", many);
    return finishedPage(run.store, run.spec, { after: 0, limit: 20, outcome: null, judged: true });
  });
  expect(page).toMatchObject({ rows: { length: 9 }, cut: true });
});

test("the rows of a page have all columns", async () => {
  const [all, ...pages] = await byHand({}, ({ sql }) =>
    ["*", PAGE_COLUMNS, JUDGED_COLUMNS].map((columns) => {
      return sql.exec(`select ${columns} from rollouts`).columnNames.toSorted();
    }),
  );
  expect(pages).toEqual([all, all]);
});
