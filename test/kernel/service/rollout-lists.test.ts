/** Lists of a run's rollouts in the API: text search, unknown names, bins. */
import { beforeAll, expect, test, vi } from "vitest";
import { GroupView, Histogram, RolloutSummaryList } from "../../../src/contract/rollout-list.ts";
import { encodeCursor } from "../../../src/kernel/kit/cursor.ts";
import { PROCESS_SCHEDULER } from "../../../src/kernel/kit/fair-scheduler.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { makeUpRows } from "../run/lists/made-up-rows.ts";
import { script } from "../script.ts";

let api: TestApi;
let run: string;
beforeAll(async () => {
  api = await openPlatform();
  const words = ["apples", "pears", "apples"];
  run = (await api.finish({ environment: "gsm8k", dataset: questions(3, words), model: script(RIGHT) })).id;
});

async function asked(path: string, query: Readonly<Record<string, string>>): Promise<Response> {
  return await api.ask(`/v1/runs/${run}/${path}?${new URLSearchParams(query)}`);
}

test("a text is found in first prompts, which are read once a search is made", async () => {
  const query = { filter: '"APPLES" reward:1', sort: "-reward", matched: "true" };
  const page = RolloutSummaryList.parse(await (await asked("rollouts", query)).json());
  expect(page.data.map(({ group }) => group).sort()).toEqual([0, 2]);
  expect([page.matched, page.searched]).toEqual([2, { rollouts: 3, of: 3 }]);
  const none = RolloutSummaryList.parse(await (await asked("rollouts", { filter: '-"p"' })).json());
  expect(none.data).toEqual([]);
});

test("a filter of many texts is counted by its cost, in slices that each cost no more than one of a plain list", async () => {
  const { id } = await api.finish({
    environment: "gsm8k",
    dataset: questions(1, []),
    model: script(RIGHT),
    rollouts_per_example: 4,
  });
  await api.inRun(id, (_, { storage }) => {
    storage.sql.exec("delete from rollouts");
    makeUpRows(storage.sql, 4000, true);
  });
  const spend = vi.spyOn(PROCESS_SCHEDULER, "spend");
  const slices = async (path: string, filter: string) => {
    spend.mockClear();
    const reply = await api.ask(`/v1/runs/${id}/${path}&${new URLSearchParams({ filter })}`);
    expect(reply.status).toBe(200);
    return spend.mock.calls.flatMap(([org, steps]) => (org === api.scope.orgId && steps >= 250_000 ? [steps] : []));
  };
  const texts = Array.from({ length: 20 }, (_, at) => `-"zq${at}"`).join(" ");
  for (const path of ["rollouts?limit=10&matched=true", "groups?sort=-reward", "histogram?of=reward"]) {
    const plain = await slices(path, "turns>0");
    const many = await slices(path, texts);
    expect([path, many.length > plain.length * 3]).toEqual([path, true]);
    expect(new Set([...plain, ...many])).toEqual(new Set([500_000]));
  }
  spend.mockRestore();
});

test("an invalid filter, and a score that no rollout has, are refused with what is expected", async () => {
  const refusal = async (path: string, query: Readonly<Record<string, string>>) => {
    const reply = await asked(path, query);
    expect(reply.status).toBe(400);
    const { error } = await reply.json<{ error: { code: string; param: string; message: string } }>();
    return [error.param, error.message];
  };
  const misspelt = await refusal("rollouts", { filter: "rewrd<1" });
  expect(misspelt).toEqual(["filter", expect.stringMatching(/has no score called rewrd; it has: .*correct_answer/)]);
  expect(await refusal("rollouts", { sort: "-nobody" })).toEqual(["sort", expect.stringContaining("nobody")]);
  expect(await refusal("histogram", { of: "nobody" })).toEqual(["of", expect.stringContaining("nobody")]);
  const open = await refusal("groups", { filter: 'reward<1 "open' });
  expect(open).toEqual(["filter", expect.stringContaining("at character 10")]);
});

test("a histogram counts every rollout, and a group is read with its members", async () => {
  const histogram = Histogram.parse(await (await asked("histogram", { of: "turns", by: "step" })).json());
  expect(histogram.counts).toEqual({ values: 3, null: 0, failed: 0, in_flight: 0 });
  expect(histogram.bins.map(({ n }) => n)).toEqual([3]);
  expect(histogram.by_step).toEqual([]);
  const shares = Histogram.parse(await (await asked("histogram", { of: "duration" })).json());
  expect([histogram.whole, shares.whole]).toEqual([true, false]);
  const group = GroupView.parse(await (await asked("groups/1", {})).json());
  expect([group.counts.scored, group.members.map(({ group: of }) => of)]).toEqual([1, [1]]);
});

test("a cursor that was never issued is refused, and cannot cause a walk before the start of the run", async () => {
  const before = Number.MIN_SAFE_INTEGER;
  const forged = [
    ["rollouts", "reward", null, before],
    ["rollouts", "reward", 1, -1],
    ["groups", "reward", null, before],
    ["rollouts", "dispatched", null, 0.5],
  ] as const;
  for (const [path, sort, value, seq] of forged) {
    const reply = await asked(path, { sort, after: encodeCursor([run, sort, value, seq]) });
    expect([path, sort, seq, reply.status]).toEqual([path, sort, seq, 400]);
    expect(await reply.json()).toMatchObject({ error: { code: "invalid_request", param: "after" } });
  }
  const last = await asked("rollouts", { sort: "reward", after: encodeCursor([run, "reward", null, 0]) });
  expect(RolloutSummaryList.parse(await last.json()).data).toEqual([]);
});
