/** The page's counts of a run's tools, and its description of a run's cost. */
import { expect, test } from "vitest";
import { parseFilter } from "../../src/contract/filter.ts";
import { costText, dollarsText } from "../../src/web/components/format.ts";
import { idFilter } from "../../src/web/pages/run/rollout-links.tsx";
import { ToolCounts } from "../../src/web/pages/run/tool-tally.ts";

const call = (id: string, name: string) => ({ id, type: "function", function: { name, arguments: "{}" } });
const asks = (...calls: readonly ReturnType<typeof call>[]) => ({ role: "assistant", content: "", tool_calls: calls });
const says = (tool_call_id: string, content: string) => ({ role: "tool", tool_call_id, content });

function row(rollout_id: string, completion: Record<string, unknown>[], superseded_by: string | null = null) {
  return { rollout_id, completion, superseded_by };
}

test("a record of a call takes precedence over the text of its result, which is checked only without a record", () => {
  const counts = new ToolCounts();
  const said = [asks(call("1", "look"), call("2", "look"), call("3", "look"))];
  const answers = [says("1", "Error: quoted"), says("2", "36"), says("3", "Error: no 7")];
  counts.add({ ...row("ro_a", [...said, ...answers]), tool_failed: [false, true, null] });
  counts.add(row("ro_b", [...said, ...answers]));
  expect([counts.recorded, counts.judged]).toEqual([2, 4]);
  const [tally] = counts.tallies();
  expect(tally).toMatchObject({ calls: 6, failed: 4, rollouts: ["ro_a", "ro_b"] });
  expect(tally?.answers.map(({ text, failed, recorded, n }) => [text, failed, recorded, n])).toEqual([
    ["Error: no 7", true, false, 2],
    ["36", true, true, 1],
    ["Error: quoted", true, false, 1],
    ["Error: quoted", false, true, 1],
    ["36", false, false, 1],
  ]);
});

test("the tool with most failures comes first, with its results by form and the turn of the first of each", () => {
  const counts = new ToolCounts();
  counts.add(
    row("ro_a", [asks(call("1", "look")), says("1", "14"), asks(call("2", "fetch")), says("2", "Error: no 7")]),
  );
  counts.add(row("ro_b", [asks(call("1", "look"), call("2", "fetch")), says("1", "15"), says("2", "Error: no 8")]));
  counts.add(row("ro_c", [asks(call("1", "look")), says("1", "2")]));
  expect(counts.rollouts).toBe(3);
  expect(counts.tallies()).toEqual([
    {
      ...{ name: "fetch", calls: 2, failed: 2, unanswered: 0, rollouts: ["ro_a", "ro_b"] },
      answers: [{ text: "Error: no 7", failed: true, recorded: false, n: 2, rollout: "ro_a", turn: 1 }],
    },
    {
      ...{ name: "look", calls: 3, failed: 0, unanswered: 0, rollouts: [] },
      answers: [{ text: "14", failed: false, recorded: false, n: 3, rollout: "ro_a", turn: 0 }],
    },
  ]);
});

test("calls of a last turn have no result, ids may repeat, and a superseded attempt does not count", () => {
  const counts = new ToolCounts();
  counts.add(row("ro_a", [asks(call("1", "look")), says("1", "4"), asks(call("1", "look"))]));
  counts.add(row("ro_b", [asks(call("1", "look")), says("1", "4")], "ro_a"));
  expect(counts.tallies()).toMatchObject([{ name: "look", calls: 2, failed: 0, unanswered: 1, answers: [{ n: 1 }] }]);
});

test("a small cost keeps three digits, and an unknown cost is not taken for zero", () => {
  const cost = { policy_micros: 1494, judge_micros: 37_809, charged_micros: 0 };
  expect([cost.policy_micros, cost.judge_micros, 120_000].map(dollarsText)).toEqual(["$0.00149", "$0.0378", "$0.12"]);
  expect(costText(cost)).toBe("$0.0393");
  expect(costText({ ...cost, judge_micros: null })).toBe("$0.00149 or more");
  expect(costText({ ...cost, policy_micros: null, judge_micros: 0 })).toBe("unknown");
});

test("a link to rollouts by id has as many ids as a filter holds, and says how many", () => {
  const ids = Array.from({ length: 30 }, (_, at) => `ro_01m7zdgsbvnzry6v07d0awng5r_${at}_0_0_yuiarvpj`);
  expect(idFilter(ids.slice(0, 2))).toEqual({ filter: `id:${ids[0]}|${ids[1]}`, n: 2 });
  const { filter, n } = idFilter(ids);
  expect(parseFilter(filter).ok).toBe(true);
  expect(parseFilter(`${filter}|${ids[n]}`).ok).toBe(false);
  expect([n > 5, n < 30]).toEqual([true, true]);
});
