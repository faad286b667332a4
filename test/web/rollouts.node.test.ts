import { expect, test } from "vitest";
import { parseFilter } from "../../src/contract/filter.ts";
import type { RolloutSummary } from "../../src/contract/rollout-list.ts";
import { suggestionsAt } from "../../src/web/components/filter-suggestions.ts";
import { csvHeader, csvRow } from "../../src/web/pages/rollouts/csv.ts";
import { FIRST, PAGE_ROWS, pagesAt, startsOf, withRead } from "../../src/web/pages/rollouts/known-pages.ts";

const rows = (n: number) => new Array(n).fill(null);

test("pages become known one after another, and only those near the visible rows are loaded", () => {
  const one = withRead(FIRST, 0, { data: rows(PAGE_ROWS), last_id: "a", has_more: true });
  const two = withRead(one, 1, { data: rows(PAGE_ROWS), last_id: "b", has_more: true });
  const three = withRead(two, 2, { data: rows(7), last_id: "c", has_more: false });
  expect(startsOf(three)).toEqual([0, 200, 400, 407]);
  expect(pagesAt(three, 190, 210)).toEqual([0, 1]);
  expect(pagesAt(three, 401, 406)).toEqual([2]);
});

test("a page that is read again with the same end changes nothing", () => {
  const read = { data: rows(PAGE_ROWS), last_id: "a", has_more: true };
  const known = withRead(FIRST, 0, read);
  expect(withRead(known, 0, read)).toBe(known);
});

test("a page with a new end moves the start of the next one", () => {
  const known = withRead(withRead(FIRST, 0, { data: rows(200), last_id: "a", has_more: true }), 1, {
    ...{ data: rows(3), last_id: "b", has_more: false },
  });
  expect(withRead(known, 0, { data: rows(200), last_id: "x", has_more: true })[1]).toEqual({ after: "x", rows: 3 });
  expect(withRead(known, 0, { data: rows(2), last_id: "y", has_more: false })).toEqual([{ after: undefined, rows: 2 }]);
});

const KNOWN = { metrics: ["right", "turns"], stops: ["max turns", "no_tools_called"] };
const offered = (text: string, caret = text.length) => {
  const { from, to, options } = suggestionsAt(text, caret, KNOWN);
  return options.map((option) => text.slice(0, from) + option.text + text.slice(to));
};

test("fields are offered by their prefix, including scores", () => {
  expect(offered("r")).toEqual(["reward<", "reviewed:", "reviewer:", "right<"]);
  expect(offered("reward<0.5 -tru")).toEqual(["reward<0.5 -truncated:"]);
  expect(offered("i")).toEqual(["id:"]);
  expect(offered("tu")).toEqual(["turns<", '"turns"<']);
});

test("values are offered if a field has a list of them, each in the form of the grammar", () => {
  expect(offered("outcome:s")).toEqual(["outcome:scored"]);
  expect(offered("error:provider|time")).toEqual(["error:provider|timeout"]);
  expect(offered("stop:")).toEqual(['stop:"max turns"', "stop:no_tools_called"]);
  expect(offered("-truncated:")).toEqual(["-truncated:true", "-truncated:false"]);
  const all = [...offered("error:"), ...offered("outcome:"), ...offered("status:"), ...offered("stop:")];
  expect(all.filter((text) => !parseFilter(text).ok)).toEqual([]);
});

test("nothing is offered inside quotes, and a piece in the middle is replaced in place", () => {
  expect(offered('"reward out')).toEqual([]);
  expect(offered("rew turns>2", 3)).toEqual(["reward< turns>2"]);
});

test("a row of CSV has unchanged numbers, nothing for null, and no formula", () => {
  const row = {
    ...{ id: "ro_1", group: 0, slot: 1, attempt: 0, superseded_by: null, task_key: "=1+1", member: null },
    task_text: "Sum, please",
    ...{ status: "done", outcome: "scored", reason: null, reward: 0.5, advantage: -1, stop_condition: 'a "b", c' },
    ...{ is_truncated: false, turns: 2, calls: 2, prompt_tokens: null, completion_tokens: null, duration: 1.5 },
    ...{ cost: { policy_micros: null, judge_micros: 0, charged_micros: 3 }, step: null, error: null },
    scores: [{ name: "right", score: null, weight: 1 }],
  } as unknown as RolloutSummary;
  expect(csvRow(row, ["right"])).toBe(
    `ro_1,0,1,0,,'=1+1,"Sum, please",,done,scored,,0.5,-1,"a ""b"", c",false,2,2,,,1.5,,0,3,,,,`,
  );
  expect(csvHeader(["right"]).split(",")).toHaveLength(
    csvRow(row, ["right"])
      .replaceAll(/"(?:[^"]|"")*"/g, "x")
      .split(",").length,
  );
});
