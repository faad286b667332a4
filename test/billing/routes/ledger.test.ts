/** Prices, balance, ledger and an operator's postings, with the organisation's real ledger. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { DEFAULT_PRICES } from "../../../src/billing/default-prices.ts";
import { createPriceList } from "../../../src/billing/prices.ts";
import { ledgerObject } from "../../../src/billing/rpc.ts";
import type { Caller } from "../../../src/contract/identity.ts";
import { openTenant, type Tenant } from "../../accounts/tenant.ts";

const FEES = { ...DEFAULT_PRICES.fees, rollout_micros: 70 };

/** A tenant, and a key of an operator in another organisation. */
async function withOperator() {
  const [tenant, other] = [await openTenant(), await openTenant()];
  const operator = await other.keyWith({ project_id: null, scopes: ["operator"] });
  const { orgId: organization } = tenant.scope;
  const once = () => ({ "idempotency-key": crypto.randomUUID() });
  const topUp = (body: object, headers: Record<string, string> = once()) =>
    other.call(operator, "POST /v1/top-ups", { organization, ...body }, headers);
  const adjust = (body: object, headers: Record<string, string> = once()) =>
    other.call(operator, "POST /v1/adjustments", { organization, kind: "correction", note: "why", ...body }, headers);
  return { tenant, other, operator, organization, topUp, adjust };
}

const balanceOf = async ({ call, admin }: Tenant) => (await call(admin, "GET /v1/balance")).body.balance_micros;

test("an organisation that is not charged has nothing and owes nothing", async () => {
  const { call, admin, scope } = await openTenant();
  expect((await call(admin, "GET /v1/balance")).body).toEqual({
    ...{ object: "balance", organization_id: scope.orgId, billing: "off", balance_micros: 0, reserved_micros: 0 },
    ...{ available_micros: null, credit_limit_micros: null, entries: 0 },
  });
  expect((await call(admin, "GET /v1/ledger")).body).toMatchObject({ data: [], first_id: null, has_more: false });
  expect((await call(admin, "GET /v1/ledger/verification")).body).toMatchObject({ ok: true, entries: 0 });
});

test("a top-up is posted once per Idempotency-Key, and another body with that key is refused", async () => {
  const { tenant, other, operator, organization, topUp } = await withOperator();
  const header = { "idempotency-key": "invoice-117" };
  const first = await topUp({ amount_micros: 5_000_000, note: "invoice 117" }, header);
  expect(first.status).toBe(201);
  expect(first.body).toMatchObject({
    ...{ object: "posted_entry", organization_id: organization, balance_micros: 5_000_000 },
    entry: {
      ...{ number: 1, kind: "top_up", amount_micros: 5_000_000, note: "invoice 117" },
      lines: [
        { account: "balance", micros: 5_000_000 },
        { account: "paid_in/operator", micros: -5_000_000 },
      ],
    },
  });
  const again = await topUp({ amount_micros: 5_000_000, note: "invoice 117" }, header);
  expect([again.status, again.body, again.headers.get("idempotent-replayed")]).toEqual([201, first.body, "true"]);
  const others = await topUp({ amount_micros: 6_000_000, note: "invoice 117" }, header);
  expect([others.status, others.body.error.code]).toEqual([422, "idempotency_conflict"]);
  const elsewhere = { organization: other.scope.orgId, amount_micros: 5_000_000, note: "invoice 117" };
  expect((await other.call(operator, "POST /v1/top-ups", elsewhere, header)).status).toBe(422);
  expect(await balanceOf(tenant)).toBe(5_000_000);
  const { data } = (await other.call(other.admin, "GET /v1/audit-log?action=createTopUp")).body;
  expect(data[0]).toMatchObject({ status: 201, made: first.body.entry.source_id });
});

test("a top-up that was interrupted after its key was written is posted once by the next try", async () => {
  const { tenant, other, operator, organization } = await withOperator();
  const body = { organization, amount_micros: 3_000_000 };
  const header = { "idempotency-key": "cut-off" };
  const first = await other.call(operator, "POST /v1/top-ups", body, header);
  // What a kill between the two writes leaves: the key, without an entry.
  const cut = await withOperator();
  await env.DB.prepare("update idempotency_keys set org_id = ? where org_id = ? and key = 'cut-off'")
    .bind(cut.other.scope.orgId, other.scope.orgId)
    .run();
  const later = await cut.other.call(cut.operator, "POST /v1/top-ups", body, header);
  expect([first.status, later.status]).toEqual([201, 201]);
  expect(later.headers.get("idempotent-replayed")).toBeNull();
  expect(await balanceOf(tenant)).toBe(6_000_000);
  expect(
    (await cut.other.call(cut.operator, "POST /v1/top-ups", body, header)).headers.get("idempotent-replayed"),
  ).toBe("true");
  expect(await balanceOf(tenant)).toBe(6_000_000);
});

test("of two concurrent requests with the same top-up one posts it", async () => {
  const { tenant, topUp } = await withOperator();
  const header = { "idempotency-key": "twice" };
  const both = await Promise.all([1, 2].map(() => topUp({ amount_micros: 1_000_000 }, header)));
  expect(both.map(({ status }) => status)).toEqual([201, 201]);
  expect(await balanceOf(tenant)).toBe(1_000_000);
});

test("a top-up without a key, of 0, or for an unknown organisation is refused with the field", async () => {
  const { tenant, topUp, other, operator } = await withOperator();
  const asked = [
    [await topUp({ amount_micros: 1 }, {}), 400, "Idempotency-Key"],
    [await topUp({ amount_micros: 0 }), 400, "amount_micros"],
    [await topUp({ amount_micros: -5 }), 400, "amount_micros"],
    [await topUp({ amount_micros: 0.5 }), 400, "amount_micros"],
    [await topUp({ amount_micros: 10_000_000_000_001 }), 400, "amount_micros"],
    [await topUp({ amount_micros: 5, organization: "org_none" }), 404, "organization"],
    [await topUp({ amount_micros: 5, source: "x" }), 400, "source"],
  ] as const;
  for (const [{ status, body }, expected, param] of asked)
    expect([status, body.error.param]).toEqual([expected, param]);
  expect(
    (await tenant.call(tenant.admin, "POST /v1/top-ups", { organization: tenant.scope.orgId, amount_micros: 1 }))
      .status,
  ).toBe(403);
  await env.DB.prepare("update organizations set deleted_at = 1 where id = ?").bind(tenant.scope.orgId).run();
  const gone = { organization: tenant.scope.orgId, amount_micros: 5 };
  expect((await other.call(operator, "POST /v1/top-ups", gone, { "idempotency-key": "gone" })).status).toBe(404);
});

test("an adjustment refers to an entry, has its source, and may make the balance negative", async () => {
  const { tenant, topUp, adjust } = await withOperator();
  const { source_id } = (await topUp({ amount_micros: 2_000_000 })).body.entry;
  const refund = await adjust({ kind: "refund", amount_micros: -2_500_000, source: source_id });
  expect(refund.body).toMatchObject({
    balance_micros: -500_000,
    entry: {
      ...{ kind: "refund", source_id, period: expect.stringMatching(/^adj_/), amount_micros: -2_500_000, note: "why" },
      lines: expect.arrayContaining([{ account: "refunds", micros: 2_500_000 }]),
    },
  });
  await adjust({ kind: "dispute", amount_micros: -1, source: source_id });
  await adjust({ amount_micros: 3, source: source_id });
  const { body } = await tenant.call(tenant.admin, `GET /v1/ledger?source_id=${source_id}`);
  const found = body.data.map(({ kind, amount_micros }: { kind: string; amount_micros: number }) => [
    kind,
    amount_micros,
  ]);
  expect(found).toEqual([
    ["correction", 3],
    ["dispute", -1],
    ["refund", -2_500_000],
    ["top_up", 2_000_000],
  ]);
  expect((await tenant.call(tenant.admin, "GET /v1/ledger/verification")).body).toMatchObject({
    ...{ ok: true, entries: 4, balance_micros: -499_998, recomputed_micros: -499_998, differences: [] },
  });
});

test("an adjustment of 0, of an unknown kind, without a reason or of an unknown source is refused", async () => {
  const { adjust } = await withOperator();
  const asked = [
    [await adjust({ amount_micros: 0, source: "x" }), 400, "amount_micros"],
    [await adjust({ amount_micros: 1, source: "x", kind: "top_up" }), 400, "kind"],
    [await adjust({ amount_micros: 1, source: "x", note: "" }), 400, "note"],
    [await adjust({ amount_micros: 1 }), 400, "source"],
    [await adjust({ amount_micros: 1, source: "ro_none" }), 404, "source"],
    [await adjust({ amount_micros: 1, source: "ro_none" }, {}), 400, "Idempotency-Key"],
  ] as const;
  for (const [{ status, body }, expected, param] of asked)
    expect([status, body.error.param]).toEqual([expected, param]);
});

test("the ledger is listed page by page, newest first, and by kind", async () => {
  const { tenant, topUp } = await withOperator();
  for (const amount_micros of [1, 2, 3]) await topUp({ amount_micros });
  const page = async (query: string) => (await tenant.call(tenant.admin, `GET /v1/ledger?${query}`)).body;
  const first = await page("limit=2");
  expect([
    first.data.map((one: { number: number }) => one.number),
    first.first_id,
    first.last_id,
    first.has_more,
  ]).toEqual([[3, 2], "3", "2", true]);
  const second = await page(`limit=2&after=${first.last_id}&kind=top_up`);
  expect([second.data.map((one: { number: number }) => one.number), second.has_more]).toEqual([[1], false]);
  expect((await page("kind=push")).data).toEqual([]);
});

test("a key of one project reads no money of its organisation; an operator reads balances, no entries", async () => {
  const { tenant, other, operator, organization, topUp } = await withOperator();
  await topUp({ amount_micros: 9 });
  for (const route of ["balance", "ledger", "ledger/verification", "budgets"]) {
    expect((await tenant.call(tenant.token, `GET /v1/${route}`)).status).toBe(403);
  }
  for (const route of ["balance", "ledger/verification"]) {
    const named = await other.call(operator, `GET /v1/${route}?organization=${organization}`);
    expect(named.body).toMatchObject({ organization_id: organization, balance_micros: 9 });
    expect((await other.call(operator, `GET /v1/${route}`)).status).toBe(403);
    expect((await other.call(operator, `GET /v1/${route}?organization=org_none`)).status).toBe(404);
    expect((await tenant.call(tenant.admin, `GET /v1/${route}?organization=${other.scope.orgId}`)).status).toBe(404);
  }
  expect((await other.call(operator, `GET /v1/ledger?organization=${organization}`)).status).toBe(403);
});

test("an operator sets how an organisation is charged, and the ledger applies it immediately", async () => {
  const { tenant, other, operator, organization, topUp } = await withOperator();
  await topUp({ amount_micros: 1_000_000 });
  const path = `PATCH /v1/organizations/${organization}`;
  const available = async () => (await tenant.call(tenant.admin, "GET /v1/balance")).body.available_micros;
  const set = async (body: object) => (await other.call(operator, path, body)).body;
  expect(await set({ billing: "prepaid" })).toMatchObject({ billing: "prepaid", credit_limit_micros: null });
  expect(await available()).toBe(1_000_000);
  expect(await set({ billing: "postpaid", credit_limit_micros: 500_000 })).toMatchObject({ billing: "postpaid" });
  expect(await available()).toBe(1_500_000);
  expect(await set({ credit_limit_micros: null, limits: { runs_in_flight: 3 } })).toMatchObject({
    ...{ billing: "postpaid", credit_limit_micros: null, limits: { runs_in_flight: 3 } },
  });
  expect(await available()).toBeNull();
  expect((await tenant.call(tenant.admin, "GET /v1/organization")).body).toMatchObject({ billing: "postpaid" });
  expect((await other.call(operator, path, { billing: "free" })).body.error.param).toBe("billing");
  expect((await other.call(operator, path, { credit_limit_micros: -1 })).body.error.param).toBe("credit_limit_micros");
  expect((await tenant.call(tenant.admin, path, { billing: "off" })).status).toBe(403);
});

test("any key reads prices, and an added list never changes and applies from its time", async () => {
  const { tenant, other, operator } = await withOperator();
  const { call, token, clock } = tenant;
  const version = (name: string) => `${name}-${crypto.randomUUID().slice(0, 8)}`;
  const [soon, later] = [version("soon"), version("later")];
  const now = clock.now / 1000;
  const add = (body: object, headers = {}) => other.call(operator, "POST /v1/prices", { fees: FEES, ...body }, headers);
  const header = { "idempotency-key": soon };
  const made = await add({ version: soon, effective_from: now + 100 }, header);
  expect([made.status, made.body]).toEqual([
    201,
    { object: "price_list", version: soon, effective_from: now + 100, fees: FEES, models: [] },
  ]);
  expect((await add({ version: later, effective_from: now + 200 })).status).toBe(201);
  expect((await add({ version: soon, effective_from: now + 100 }, header)).headers.get("idempotent-replayed")).toBe(
    "true",
  );
  const versions = async () => {
    const { data } = (await call(token, "GET /v1/prices")).body;
    return data.map((one: { version: string }) => one.version).filter((one: string) => [soon, later].includes(one));
  };
  const inForce = async () => (await call(token, "GET /v1/prices")).body.data[0].version;
  expect(await versions()).toEqual([soon, later]);
  expect(await inForce()).not.toBe(soon);
  clock.now += 100_000;
  expect(await inForce()).toBe(soon);
  clock.now += 100_000;
  expect([await inForce(), await versions()]).toEqual([later, [later]]);
  expect((await call(token, `GET /v1/prices?version=${soon}`)).body.data).toEqual([made.body]);
  expect((await call(token, `GET /v1/prices?version=${DEFAULT_PRICES.version}`)).body.data).toEqual([DEFAULT_PRICES]);
  expect((await call(token, "GET /v1/prices?version=none")).status).toBe(404);
  const taken = await add({ version: soon, effective_from: now + 300 });
  expect([taken.status, taken.body.error.param]).toEqual([409, "version"]);
  const same = await add({ version: version("same"), effective_from: now + 200 });
  expect([same.status, same.body.error.param]).toEqual([409, "effective_from"]);
  expect((await add({ version: DEFAULT_PRICES.version, effective_from: now + 300 })).status).toBe(409);
  await env.DB.prepare("delete from price_lists where version in (?, ?)").bind(soon, later).run();
});

test("prices of models at addresses that the deployment may not call are refused", async () => {
  const deployed = { ...env, ALLOW_PRIVATE_ENDPOINTS: "false" };
  const { other } = await withOperator();
  const caller: Caller = {
    ...{ orgId: other.scope.orgId, projectId: null, permissions: ["operator"], who: "key_1", runId: null },
    ...{ expiresAt: null, perMinute: { own: null, organization: null } },
  };
  const tokens = { input_per_mtok_micros: 1, cached_input_per_mtok_micros: 1, output_per_mtok_micros: 1 };
  const options = { idempotencyKey: null, requestHash: "", now: other.clock.now };
  for (const base_url of ["http://169.254.169.254/v1", "https://10.0.0.7/v1", "http://gpu.example/v1"]) {
    const models = [
      { base_url: "https://gpu.example/v1", model: "m", ...tokens },
      { base_url, model: "n", ...tokens },
    ];
    const list = { version: crypto.randomUUID(), effective_from: null, fees: FEES, models };
    const refused = { ok: false, error: { code: "url_not_allowed", param: "models.1.base_url" } };
    expect(await createPriceList(deployed, caller, list, options)).toMatchObject(refused);
  }
});

test("a price list without a time applies from the second it is created in", async () => {
  const { other, operator } = await withOperator();
  const version = `now-${crypto.randomUUID().slice(0, 8)}`;
  other.clock.now = 4_100_000_000_999;
  const { status, body } = await other.call(operator, "POST /v1/prices", { version, fees: FEES });
  try {
    expect([status, body.effective_from]).toEqual([201, 4_100_000_000]);
    expect((await other.call(operator, "GET /v1/prices")).body.data[0].version).toBe(version);
  } finally {
    await env.DB.prepare("delete from price_lists where version = ?").bind(version).run();
  }
});

test("of two concurrent lists with one start one is created, and a list sent twice is created once", async () => {
  const { other, operator } = await withOperator();
  const mark = crypto.randomUUID().slice(0, 8);
  const effective_from = other.clock.now / 1000 + 50_000;
  const add = (version: string, key: string, at = effective_from) =>
    other.call(operator, "POST /v1/prices", { version, effective_from: at, fees: FEES }, { "idempotency-key": key });
  const both = await Promise.all(["one", "two"].map((name) => add(`${mark}-${name}`, `${mark}-${name}`)));
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  expect(both.find(({ status }) => status === 409)?.body.error.param).toBe("effective_from");
  const twice = await Promise.all([1, 2].map(() => add(`${mark}-same`, `${mark}-same`, effective_from + 1)));
  expect(twice.map(({ status }) => status)).toEqual([201, 201]);
  await env.DB.prepare("delete from price_lists where version like ?").bind(`${mark}-%`).run();
});

test("prices that start in the past or after ten years, repeat a model, or lack an operator are refused", async () => {
  const { tenant, other, operator } = await withOperator();
  const now = other.clock.now / 1000;
  const model = {
    base_url: "https://models.example/v1",
    model: "m",
    input_per_mtok_micros: 1,
    cached_input_per_mtok_micros: 1,
    output_per_mtok_micros: 1,
  };
  const add = (body: object) =>
    other.call(operator, "POST /v1/prices", { version: "x", effective_from: now, fees: FEES, ...body });
  const asked = [
    [await add({ effective_from: now - 1 }), "effective_from"],
    [await add({ effective_from: now + 11 * 366 * 86_400 }), "effective_from"],
    [await add({ effective_from: 1e15 }), "effective_from"],
    [await add({ models: [model, { ...model, base_url: `${model.base_url}/./` }] }), "models"],
    [await add({ version: "No Version" }), "version"],
    [await add({ fees: { ...FEES, rollout_micros: -1 } }), "fees.rollout_micros"],
    [await add({ fees: { ...FEES, rollout_micros: 0.5 } }), "fees.rollout_micros"],
  ] as const;
  for (const [{ status, body }, param] of asked) expect([status, body.error.param]).toEqual([400, param]);
  const body = { version: "x", effective_from: now, fees: FEES };
  expect((await tenant.call(tenant.admin, "POST /v1/prices", body)).status).toBe(403);
});

test("only owners manage budgets: each has one target and shows this month's spending", async () => {
  const tenant = await openTenant();
  const { call, admin, scope, keyWith } = tenant;
  const header = { "idempotency-key": "b" };
  const make = (body: object, headers = {}) => call(admin, "POST /v1/budgets", { limit_micros: 100, ...body }, headers);
  const whole = await make({ target_kind: "organization" }, header);
  expect([whole.status, whole.headers.get("location")]).toEqual([201, `/v1/budgets/${whole.body.id}`]);
  expect(whole.body).toMatchObject({
    ...{ object: "budget", id: expect.stringMatching(/^bud_/), target_kind: "organization", target_id: scope.orgId },
    ...{ limit_micros: 100, spent_micros: 0, reserved_micros: 0, thresholds_crossed: [] },
  });
  expect((await make({ target_kind: "organization" }, header)).body).toEqual(whole.body);
  expect((await make({ target_kind: "organization" })).status).toBe(409);
  const project = (await make({ target_kind: "project", target_id: scope.projectId })).body;
  const stranger = await openTenant();
  const asked = [
    [{ target_kind: "project", target_id: stranger.scope.projectId }, 404, "target_id"],
    [{ target_kind: "key", target_id: "key_none" }, 404, "target_id"],
    [{ target_kind: "organization", target_id: stranger.scope.orgId }, 404, "target_id"],
    [{ target_kind: "project" }, 400, "target_id"],
    [{ target_kind: "team" }, 400, "target_kind"],
    [{ target_kind: "organization", limit_micros: -1 }, 400, "limit_micros"],
  ] as const;
  for (const [body, status, param] of asked) {
    const refused = await make(body);
    expect([refused.status, refused.body.error.param]).toEqual([status, param]);
  }
  await ledgerObject(env, scope.orgId).post({
    ...{ orgId: scope.orgId, kind: "storage", source_id: scope.projectId, period: "2026-11-01", amount_micros: 0 },
    ...{ project_id: scope.projectId, lines: { storage: 85 }, price_version: "2026-11", against: "", note: null },
  });
  const { data } = (await call(admin, "GET /v1/budgets?order=asc")).body;
  const standing = data.map((one: Record<string, unknown>) => [
    one["id"],
    one["spent_micros"],
    one["thresholds_crossed"],
  ]);
  expect(standing).toEqual(
    expect.arrayContaining([
      [whole.body.id, 85, [50, 80]],
      [project.id, 85, [50, 80]],
    ]),
  );
  const raised = await call(admin, `PATCH /v1/budgets/${project.id}`, { limit_micros: 85 });
  expect(raised.body).toMatchObject({ limit_micros: 85, thresholds_crossed: [50, 80, 100] });
  const reader = await keyWith({ project_id: null, scopes: ["billing:read"] });
  expect((await call(reader, `GET /v1/budgets/${project.id}`)).body).toEqual(raised.body);
  expect((await call(reader, `DELETE /v1/budgets/${project.id}`)).status).toBe(403);
  expect((await call(admin, `DELETE /v1/budgets/${project.id}`)).body).toEqual({
    object: "budget",
    id: project.id,
    deleted: true,
  });
  expect((await call(admin, `GET /v1/budgets/${project.id}`)).status).toBe(404);
  expect((await stranger.call(stranger.admin, `GET /v1/budgets/${whole.body.id}`)).status).toBe(404);
});
