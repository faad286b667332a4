/** Reading usage: buckets of whole hours and days, groups, pages, CSV. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";
import { type UsageHourRow, usageHours } from "../../../src/billing/tables.ts";
import type { UsagePage } from "../../../src/billing/wire.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { inOrganization } from "../../../src/kernel/db/scoped.ts";
import { openTestApi, type TestApi } from "../../kernel/http/test-api.ts";

const DAY = 86_400;
/** A Monday, 0:00 UTC. */
const MONDAY = 1_795_392_000;

let api: TestApi;

beforeAll(async () => {
  api = await openTestApi({});
  await used({
    hour: MONDAY,
    counts: { rollouts: 2, turns: 5, input_tokens: 700, policy_micros: 900, priced_calls: 4 },
    lines: { rollout: 120, turns: 60 },
  });
  await used({ hour: MONDAY + 3600, counts: { rollouts: 1, turns: 1, lost_calls: 1 }, lines: { rollout: 60 } });
  await used({ hour: MONDAY + 3600, model: "=cmd()", counts: { rollouts: 4 }, lines: {} });
  await used({ hour: MONDAY + DAY, project_id: "pj_other", counts: { rollouts: 7 }, lines: { rollout: 420 } });
  await used({ hour: MONDAY + DAY, kind: "storage", counts: { byte_days: 5 }, lines: { storage: 3 } });
});

async function used(row: Pick<UsageHourRow, "hour" | "counts" | "lines"> & Partial<UsageHourRow>): Promise<void> {
  const { orgId, projectId } = api.scope;
  const usual = { project_id: projectId, payer: "key_a", environment: "gsm8k", model: "m", kind: "eval" };
  await inOrganization(databaseOf(env), orgId).insert(usageHours, { ...usual, ...row });
}

async function read(query: string): Promise<UsagePage> {
  return await (await api.ask(`/v1/usage?${query}`)).json();
}

const sumsOf = ({ data }: UsagePage) =>
  data.map(({ results }) => results.map(({ rollouts, turns, cost_micros }) => [rollouts, turns, cost_micros]));

describe("usage", () => {
  test("adds up the hours of each UTC day for the key's project, and shows days without any", async () => {
    const page = await read(`start_time=${MONDAY + 5}&end_time=${MONDAY + 3 * DAY}`);
    expect(page.data.map(({ start_time, end_time }) => [start_time, end_time])).toEqual([
      [MONDAY, MONDAY + DAY],
      [MONDAY + DAY, MONDAY + 2 * DAY],
      [MONDAY + 2 * DAY, MONDAY + 3 * DAY],
    ]);
    expect(sumsOf(page)).toEqual([[[7, 6, 240]], [[0, 0, 3]], []]);
    expect(page.data[0]?.results[0]).toMatchObject({ lines: { rollout: 180, turns: 60 }, lost_calls: 1, model: null });
  });

  test("gives each group its own result, by hour", async () => {
    const page = await read(`start_time=${MONDAY}&end_time=${MONDAY + 7200}&bucket_width=1h&group_by=kind,model`);
    expect(page.data.map(({ results }) => results.map(({ model, kind, rollouts }) => [model, kind, rollouts]))).toEqual(
      [
        [["m", "eval", 2]],
        [
          ["=cmd()", "eval", 4],
          ["m", "eval", 1],
        ],
      ],
    );
  });

  test("is limited to the names that are given, and shows what calls of models cost", async () => {
    const query = `start_time=${MONDAY}&end_time=${MONDAY + 2 * DAY}`;
    expect(sumsOf(await read(`${query}&model=%3Dcmd()`))).toEqual([[[4, 0, 0]], []]);
    expect(sumsOf(await read(`${query}&kind=storage&environment=gsm8k`))).toEqual([[], [[0, 0, 3]]]);
    expect(sumsOf(await read(`${query}&project_id=pj_other`))).toEqual([[], []]);
    expect(sumsOf(await read(`${query}&key_id=key_b`))).toEqual([[], []]);
    const [first] = (await read(`${query}&model=m`)).data;
    expect(first?.results[0]).toMatchObject({ policy_micros: 900, judge_micros: 0, priced_calls: 4 });
  });

  test("covers the last seven days by default", async () => {
    api.clock.now = (MONDAY + 2 * DAY + 5) * 1000;
    const { data, has_more } = await read("group_by=kind");
    expect([data.length, data.at(-1)?.start_time, has_more]).toEqual([7, MONDAY + 2 * DAY, false]);
  });

  test("continues with the next page where the last one ended", async () => {
    const first = await read(`start_time=${MONDAY}&end_time=${MONDAY + 3 * DAY}&limit=1`);
    expect(first).toMatchObject({ has_more: true, next_page: String(MONDAY + DAY) });
    const second = await read(`start_time=${MONDAY}&end_time=${MONDAY + 3 * DAY}&limit=2&page=${first.next_page}`);
    expect(second).toMatchObject({ has_more: false, next_page: null });
    expect([...sumsOf(first), ...sumsOf(second)]).toEqual([[[7, 6, 240]], [[0, 0, 3]], []]);
  });

  test("is available as CSV, in which no name is a formula", async () => {
    const query = `start_time=${MONDAY + 3600}&end_time=${MONDAY + 7200}&bucket_width=1h&group_by=model`;
    const reply = await api.ask(`/v1/usage/csv?${query}`);
    expect(reply.headers.get("content-type")).toMatch(/^text\/csv/);
    const [header = "", ...rows] = (await reply.text()).trimEnd().split("\r\n");
    const columns = header.split(",");
    const cell = (row: string, name: string) => row.split(",")[columns.indexOf(name)];
    expect(rows.map((row) => [cell(row, "model"), cell(row, "rollouts"), cell(row, "rollout_micros")])).toEqual([
      ["'=cmd()", "4", ""],
      ["m", "1", "60"],
    ]);
  });

  test.each([
    ["end_time before start_time", `start_time=${MONDAY}&end_time=${MONDAY - 1}`, "end_time"],
    ["a group that is none", `start_time=0&group_by=model,colour`, "group_by"],
    ["a group twice", `start_time=0&group_by=model,model`, "group_by"],
    ["an empty model", "start_time=0&model=", "model"],
    ["a kind that is none", "start_time=0&kind=evals", "kind"],
    ["too many days", `start_time=0&limit=63`, "limit"],
  ])("refuses %s, and names the field", async (_, query, param) => {
    const reply = await api.ask(`/v1/usage?${query}`);
    expect([reply.status, await reply.json()]).toMatchObject([400, { error: { param } }]);
  });
});
