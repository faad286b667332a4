/** An archive with more files than one call reads: paging finds all entries. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { Ledger } from "../../../src/billing/ledger/ledger.ts";
import { AccountObject } from "../../../src/billing/object.ts";
import type { ChargeAudit } from "../../../src/contract/audit.ts";
import type { LedgerEntry } from "../../../src/contract/money.ts";
import { admit } from "../../accounts/admit.ts";
import { openPaying, settle } from "../../kernel/paying.ts";
import { inside, type TestApi } from "../../kernel/platform.ts";
import { questions, RIGHT } from "../../kernel/rows.ts";
import { script } from "../../kernel/script.ts";
import { topUp } from "./booking.ts";

const FILES = 405;

let api: TestApi;
let runId: string;
let token: string;

/** A file for each entry: a payment, two rollouts, and hundreds of payments with one source. */
beforeAll(async () => {
  api = await openPaying(1_000_000);
  const { orgId } = api.scope;
  token = await admit(api.scope, { project_id: null, scopes: ["operator", "billing:read"] });
  const { id } = await api.finish({ environment: "gsm8k", dataset: questions(2), model: script(RIGHT) });
  runId = id;
  expect(await settle(api, id)).toBe(true);
  await inside(env.ACCOUNT.getByName(`org/${orgId}`), AccountObject, async (object, { storage }) => {
    for (let number = 4; number <= FILES; number += 1) {
      await object.ledger.post({ ...topUp({ id: orgId }, 1, "pi_many"), period: String(number) });
    }
    object.ledger.archiveBounds = { kept: 0, entriesAFile: 1 };
    for (let alarms = 0; alarms < FILES; alarms += 10) await object.alarm();
    const ledger = new Ledger(storage);
    expect([ledger.archive.count(), ledger.entries.firstNumber()]).toEqual([FILES, FILES + 1]);
    // As if the run's entries spanned all the files.
    ledger.rows.set("cursors", { run_id: runId, stream: "ends" }, { last_entry: FILES });
  });
});

async function read<T>(path: string): Promise<T> {
  return await (await api.ask(path, { headers: { authorization: `Bearer ${token}` } })).json();
}

interface Listed {
  readonly data: readonly LedgerEntry[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

test("a list filtered by kind continues after an empty page, and ends with the first entry", async () => {
  const empty = await read<Listed>("/v1/ledger?kind=rescore&limit=2");
  expect(empty).toMatchObject({ data: [], has_more: true, first_id: null, last_id: String(FILES - 299) });
  const rest = await read<Listed>(`/v1/ledger?kind=rescore&after=${empty.last_id}`);
  expect(rest).toMatchObject({ data: [], has_more: false, last_id: null });
  const full = await read<Listed>("/v1/ledger?kind=rollout&after=6&limit=1");
  expect([full.data.map(({ number }) => number), full.has_more, full.last_id]).toEqual([[3], true, "3"]);
  const last = await read<Listed>("/v1/ledger?kind=rollout&after=3");
  expect([last.data.map(({ number }) => number), last.has_more]).toEqual([[2], false]);
});

test("entries of one source, more than one call looks up, are found page by page", async () => {
  const empty = await read<Listed>("/v1/ledger?source_id=pi_many&kind=refund");
  expect(empty).toMatchObject({ data: [], has_more: true, last_id: String(FILES - 299) });
  const { data, has_more } = await read<Listed>(`/v1/ledger?source_id=pi_many&after=${empty.last_id}&limit=100`);
  expect([data[0]?.number, data.at(-1)?.number, has_more]).toEqual([FILES - 300, FILES - 399, true]);
});

test("an archived rollout is found by its id, however many files its run spans, and can be adjusted", async () => {
  const [rollout] = await api.results(runId);
  const source = rollout?.rollout_id ?? "";
  const organization = api.scope.orgId;
  const adjustment = { organization, kind: "correction", amount_micros: 7, source, note: "an outage" };
  const headers = { authorization: `Bearer ${token}`, "idempotency-key": "seven" };
  const adjusted = await api.post("/v1/adjustments", adjustment, headers);
  expect([adjusted.status, await adjusted.json()]).toMatchObject([201, { entry: { source_id: source } }]);
  const found = await read<Listed>(`/v1/ledger?source_id=${source}&after=6`);
  expect(found).toMatchObject({ data: [{ kind: "rollout", source_id: source, run_id: runId }], has_more: false });
});

test("an audit of a run whose entries are in hundreds of files finds each of them", async () => {
  const audit: ChargeAudit = await (await api.ask(`/v1/runs/${runId}/charges`)).json();
  expect(audit).toMatchObject({ checked: 2, unsettled: 0, differences: [], next: null });
});
