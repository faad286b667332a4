/** The rollouts of a run that have not ended, listed by the run itself; cursors of its lists. */
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { RolloutSummaryList } from "../../../src/contract/rollout-list.ts";
import { RolloutObject } from "../../../src/kernel/rollout/object.ts";
import { isOf, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const HANGS = [{ fault: { kind: "hang" } }] as const;

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function list(id: string, query = ""): Promise<RolloutSummaryList> {
  const reply = await api.ask(`/v1/runs/${id}/rollouts${query}`);
  expect(reply.status).toBe(200);
  return RolloutSummaryList.parse(await reply.json());
}

test("rollouts in flight are listed page by page with id and slot, none of their objects is called, and one is cancelled by its id", async () => {
  const model = script(RIGHT, { stuck: HANGS });
  const words = ["plain", "stuck", "plain", "stuck", "stuck"];
  const run = await api.start({ environment: "gsm8k", dataset: questions(5, words), model });
  await requestsOf(model, 5);
  await expect.poll(async () => (await api.run(run.id)).counts.scored).toBe(2);
  const asked = vi.spyOn(RolloutObject.prototype, "ask");
  const read = vi.spyOn(RolloutObject.prototype, "read");
  const first = await list(run.id, "?filter=status:running&limit=2");
  const rest = await list(run.id, `?filter=status:running&limit=2&after=${first.last_id}`);
  const callsOf = ({ mock }: typeof asked | typeof read) => mock.contexts.filter((rollout) => isOf(run.id, rollout));
  expect([callsOf(asked), callsOf(read)]).toEqual([[], []]);
  expect([first.has_more, rest.has_more]).toEqual([true, false]);
  const listed = [...first.data, ...rest.data];
  expect(listed.map(({ id }) => id)).toEqual([1, 3, 4].map((group) => rolloutAt(run.id, group)));
  for (const { started_at, ...rollout } of listed) {
    expect(rollout).toMatchObject({ slot: 0, attempt: 0, status: "running", turns: null });
    expect(started_at).toBeGreaterThan(0);
  }
  const [one] = listed;
  await api.post(`/v1/rollouts/${one?.id}/cancel`, {});
  await expect.poll(async () => (await list(run.id, "?filter=-status:done")).data.length).toBe(2);
  expect((await api.run(run.id)).counts.cancelled).toEqual({ user: 1 });
  await api.post(`/v1/runs/${run.id}/cancel`, {});
  await api.ended(run.id);
  expect((await list(run.id, "?filter=-status:done")).data).toEqual([]);
});

test("a cursor of another run, or without meaning, is refused by name", async () => {
  const [one, other] = await Promise.all(
    [1, 2].map(() => api.finish({ environment: "gsm8k", dataset: questions(1), model: script(RIGHT) })),
  );
  const { last_id } = await list(other?.id ?? "");
  for (const after of [last_id, rolloutAt(one?.id ?? ""), "ro_1", "e30", "W10", ""]) {
    const reply = await api.ask(`/v1/runs/${one?.id}/rollouts?after=${after}`);
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({
      error: { code: "invalid_request", param: "after" },
    });
  }
});
