/** Payments through Stripe: real events and real signatures in, entries of the ledger out. */
import { env } from "cloudflare:workers";
import { createHmac } from "node:crypto";
import { afterEach, expect, test, vi } from "vitest";
import { openAuthentication } from "../../../src/accounts/authentication.ts";
import { ledgerObject } from "../../../src/billing/rpc.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { createApp } from "../../../src/kernel/http/app.ts";
import { services } from "../../../src/kernel/service/services.ts";
import { SLICE_SERVICES } from "../../../src/slice-services.ts";
import { OPERATIONS } from "../../../src/slices.ts";
import { readTotals } from "../../../src/telemetry/queries.ts";
import { openTenant } from "../../accounts/tenant.ts";
import { disputeOf, eventOf, idsOf, type Paid, paymentOf, refundOf, sessionOf } from "../../fakes/stripe-objects.ts";
import { checked } from "../../kernel/http/validate-responses.ts";

const NOW = 1_792_000_100_000;
const SECRET = "whsec_c2lnbmVkIGJ5IHN0cmlwZQ";
const HTML = "payer@example.com";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The deployment's requests to Stripe, and Stripe's answers. */
function fakeStripe(answer: (url: URL, init: RequestInit) => unknown) {
  const asked: { readonly url: string; readonly headers: Headers; readonly body: string }[] = [];
  const fetch = async (url: URL, init: RequestInit) => {
    asked.push({ url: url.href, headers: new Headers(init.headers), body: String(init.body ?? "") });
    const found = answer(url, init);
    const missing = {
      error: { type: "invalid_request_error", message: "No such payment_intent", code: "resource_missing" },
    };
    if (found instanceof Response) return found;
    return found === undefined ? Response.json(missing, { status: 404 }) : Response.json(found);
  };
  return { asked, NETWORK: { fetch } };
}

async function deployment(answer: (url: URL, init: RequestInit) => unknown = () => undefined) {
  const tenant = await openTenant();
  const { asked, NETWORK } = fakeStripe(answer);
  const configured = { ...env, STRIPE_SECRET_KEY: "sk_test_1", STRIPE_WEBHOOK_SECRET: SECRET, NETWORK };
  const app = createApp(
    {
      services,
      slices: SLICE_SERVICES,
      authentication: openAuthentication,
      now: () => NOW,
      outlive: (work) => work,
      report: () => undefined,
    },
    OPERATIONS,
  );
  const ask = checked(async (path, init) => await app.request(`http://platform.test${path}`, init, configured));
  const deliver = async (body: string, signature = signed(body), type = "application/json; charset=utf-8") => {
    const headers = { "content-type": type, "stripe-signature": signature, "cf-connecting-ip": crypto.randomUUID() };
    const reply = await ask("/v1/stripe/webhook", { method: "POST", headers, body });
    // biome-ignore lint/suspicious/noExplicitAny: a body is whatever the test says of it
    return { status: reply.status, body: await reply.json<any>() };
  };
  const { orgId } = tenant.scope;
  const paid = (cents: number, more: Partial<Paid> = {}): Paid => {
    const mark = crypto.randomUUID().replaceAll("-", "");
    return { mark, cents, metadata: { rollcall_organization: orgId, rollcall_payer: "key_1" }, ...more };
  };
  const ledger = async (): Promise<readonly (readonly unknown[])[]> => {
    const all = { before: null, limit: 100, kind: null, run_id: null, source_id: null };
    const { entries } = await ledgerObject(env, orgId).entries(all);
    return entries.map(({ kind, source_id, amount_micros }) => [kind, source_id, amount_micros]).reverse();
  };
  const balance = async () => (await ledgerObject(env, orgId).balance(orgId)).balance_micros;
  return { tenant, ask, deliver, paid, ledger, balance, asked, orgId };
}

/** Computed without the library: HMAC-SHA256 over the time, a dot and the body. */
function signed(body: string, { at = NOW / 1000 - 5, secret = SECRET } = {}): string {
  const mac = createHmac("sha256", secret).update(`${at}.${body}`).digest("hex");
  return `t=${at},v1=${mac},v0=${"0".repeat(64)}`;
}

test("a payment is posted once, whichever of its events arrive and however often", async () => {
  const { deliver, paid, ledger, balance, orgId, tenant } = await deployment();
  const payment = paid(2500);
  const completed = eventOf("checkout.session.completed", sessionOf(payment), { id: "evt_1" });
  const succeeded = eventOf("payment_intent.succeeded", paymentOf(payment), { id: "evt_2" });
  const first = await deliver(completed);
  expect(first).toEqual({
    status: 200,
    body: { object: "stripe_receipt", event_id: "evt_1", outcome: "posted", reason: null },
  });
  const [again, other] = await Promise.all([deliver(completed), deliver(succeeded)]);
  expect([again.body.outcome, other.body.outcome]).toEqual(["repeated", "repeated"]);
  expect(await ledger()).toEqual([["top_up", idsOf(payment).payment, 25_000_000]]);
  expect(await balance()).toBe(25_000_000);
  const newest = { before: null, limit: 1, kind: null, run_id: null, source_id: null };
  const { entries } = await ledgerObject(env, orgId).entries(newest);
  expect(entries[0]).toMatchObject({
    note: "evt_1",
    lines: expect.arrayContaining([{ account: "paid_in/stripe", micros: -25_000_000 }]),
  });
  const { data } = (await tenant.call(tenant.admin, "GET /v1/audit-log")).body;
  expect(data).toMatchObject([{ who: "stripe", action: "receiveStripeEvent", made: "evt_1" }]);
});

test("of two concurrent deliveries one posts the payment", async () => {
  const { deliver, paid, balance } = await deployment();
  const payment = paid(700);
  const both = await Promise.all([
    deliver(eventOf("payment_intent.succeeded", paymentOf(payment))),
    deliver(eventOf("checkout.session.completed", sessionOf(payment))),
  ]);
  expect(both.map(({ body }) => body.outcome).sort()).toEqual(["posted", "repeated"]);
  expect(await balance()).toBe(7_000_000);
});

test("each refund is subtracted once, also before the payment, and added back once if it failed", async () => {
  const { deliver, paid, ledger, balance } = await deployment(() => paymentOf(payment));
  const payment = paid(1000);
  const { payment: pi } = idsOf(payment);
  const refund = (type: string, number: number, status: string) => {
    return eventOf(type, refundOf(payment, number, number === 1 ? 300 : 700, status));
  };
  const part = refund("refund.created", 1, "pending");
  const rest = refund("refund.created", 2, "succeeded");
  for (const event of [rest, part, rest, part, refund("refund.updated", 1, "succeeded")]) await deliver(event);
  expect(await balance()).toBe(-10_000_000);
  await deliver(eventOf("payment_intent.succeeded", paymentOf(payment)));
  for (const type of ["refund.failed", "refund.updated", "charge.refund.updated"]) {
    await deliver(refund(type, 1, "failed"));
  }
  // The refund is made again, and then cancelled.
  const again = refundOf(payment, 3, 300, "requires_action");
  await deliver(eventOf("refund.updated", { ...again, status: "canceled" }));
  await deliver(eventOf("refund.created", again));
  expect(await ledger()).toEqual([
    ["refund", pi, -7_000_000],
    ["refund", pi, -3_000_000],
    ["top_up", pi, 10_000_000],
    ["refund", pi, 3_000_000],
    ["refund", pi, 3_000_000],
    ["refund", pi, -3_000_000],
  ]);
  expect(await balance()).toBe(3_000_000);
});

test("a dispute takes the money away, and brings it back once it is won", async () => {
  const { deliver, paid, ledger, balance, asked } = await deployment((url) => {
    return url.pathname === `/v1/payment_intents/${idsOf(payment).payment}` ? paymentOf(payment) : undefined;
  });
  const payment = paid(1000);
  await deliver(eventOf("payment_intent.succeeded", paymentOf(payment)));
  const created = eventOf("charge.dispute.created", disputeOf(payment, "needs_response"));
  await deliver(created);
  await deliver(eventOf("charge.dispute.funds_withdrawn", disputeOf(payment, "needs_response")));
  expect(await balance()).toBe(0);
  const won = eventOf("charge.dispute.closed", disputeOf(payment, "won"));
  for (const event of [won, created, won]) await deliver(event);
  await deliver(eventOf("charge.dispute.funds_reinstated", disputeOf(payment, "won")));
  expect(await ledger()).toEqual([
    ["top_up", idsOf(payment).payment, 10_000_000],
    ["dispute", idsOf(payment).payment, -10_000_000],
    ["dispute", idsOf(payment).payment, 10_000_000],
  ]);
  expect(asked[0]?.headers.get("stripe-version")).toBe("2026-10-28.endive");
  expect(asked[0]?.headers.get("authorization")).toBe("Bearer sk_test_1");
});

test("a dispute that is lost or was prevented, and an inquiry, change nothing more", async () => {
  const { deliver, paid, ledger } = await deployment();
  for (const [type, status] of [
    ["charge.dispute.closed", "lost"],
    ["charge.dispute.created", "warning_needs_response"],
    ["charge.dispute.created", "prevented"],
    ["charge.dispute.closed", "prevented"],
    ["charge.dispute.closed", "warning_closed"],
  ] as const) {
    const { status: replied, body } = await deliver(eventOf(type, disputeOf(paid(500), status)));
    expect([replied, body.outcome]).toEqual([200, "ignored"]);
  }
  expect(await ledger()).toEqual([]);
});

test("an event that Stripe did not sign, or signed too long ago, changes nothing", async () => {
  const { deliver, paid, ledger } = await deployment();
  const body = eventOf("payment_intent.succeeded", paymentOf(paid(500)));
  const wrong = await deliver(body, signed(body, { secret: "whsec_another" }));
  expect([wrong.status, wrong.body.error.code]).toEqual([401, "invalid_signature"]);
  const changed = await deliver(body.replace("500", "900"), signed(body));
  expect([changed.status, changed.body.error.code]).toEqual([401, "invalid_signature"]);
  for (const none of ["", "t=1,v1=", "v1=00"]) expect((await deliver(body, none)).status).toBe(401);
  const old = await deliver(body, signed(body, { at: NOW / 1000 - 301 }));
  expect([old.status, old.body.error.code]).toEqual([401, "stale_timestamp"]);
  expect(await ledger()).toEqual([]);
  expect((await deliver(body, signed(body, { at: NOW / 1000 - 300 }))).body.outcome).toBe("posted");
});

/** Log lines about money that is in no ledger. Objects of other files write to the same log. */
function notifiedOfMoney(): () => string[] {
  const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const lines = () => log.mock.calls.map(([line]) => String(line));
  return () => lines().filter((line) => line.includes('"message":"money moved that is in no ledger"'));
}

test("money in another currency, or of a deleted organisation, is logged and not posted", async () => {
  const { deliver, paid, ledger } = await deployment();
  const said = notifiedOfMoney();
  const euros = await deliver(eventOf("payment_intent.succeeded", paymentOf(paid(500, { currency: "eur" }))));
  const gone = { rollcall_organization: "org_gone" };
  const nobody = await deliver(eventOf("payment_intent.succeeded", paymentOf(paid(500, { metadata: gone }))));
  expect([euros.status, euros.body.outcome, nobody.status, nobody.body.outcome]).toEqual([
    200,
    "ignored",
    200,
    "ignored",
  ]);
  expect(said()).toHaveLength(2);
  expect(said().join()).toMatch(/is in eur.*org_gone/s);
  expect(said().join()).not.toContain(HTML);
  expect(await ledger()).toEqual([]);
});

test("an event about an organisation being deleted is accepted, logged, counted, and no repeat", async () => {
  const { deliver, paid, orgId } = await deployment();
  const unposted = async () =>
    (await readTotals(databaseOf(env))).find(({ kind }) => kind === "events_unposted")?.n ?? 0;
  const before = await unposted();
  expect(await ledgerObject(env, orgId).forget()).toBe(true);
  const said = notifiedOfMoney();
  const payment = paid(500);
  const reply = await deliver(eventOf("payment_intent.succeeded", paymentOf(payment), { id: "evt_late" }));
  const reason = `${idsOf(payment).payment} is for ${orgId}, which is being deleted`;
  expect([reply.status, reply.body]).toMatchObject([200, { outcome: "ignored", reason }]);
  expect(said().map((line) => JSON.parse(line))).toMatchObject([
    { message: "money moved that is in no ledger", event_id: "evt_late", org_id: orgId },
  ]);
  expect(await unposted()).toBe(before + 1);
});

test("events that do not concern the platform are ignored: other payments, other types, unpaid sessions", async () => {
  const { deliver, paid, ledger } = await deployment();
  const unpaid = { ...sessionOf(paid(500)), payment_status: "unpaid" };
  for (const event of [
    eventOf("payment_intent.succeeded", paymentOf(paid(500, { metadata: {} }))),
    eventOf("customer.created", { id: "cus_1", object: "customer" }),
    eventOf("checkout.session.completed", unpaid),
    eventOf("checkout.session.completed", { ...unpaid, mode: "setup", payment_intent: null }),
    eventOf("charge.dispute.created", disputeOf(paid(500), "needs_response")),
  ]) {
    const { status, body } = await deliver(event);
    expect([status, body.outcome, typeof body.reason]).toEqual([200, "ignored", "string"]);
  }
  expect(await ledger()).toEqual([]);
});

test("an event of another version is refused, so that Stripe sends it again to a new webhook", async () => {
  const { deliver, paid } = await deployment();
  const event = eventOf("payment_intent.succeeded", paymentOf(paid(500)), { version: "2024-06-20" });
  const { status, body } = await deliver(event);
  expect([status, body.error.param, body.error.message]).toEqual([
    400,
    "api_version",
    expect.stringMatching(/2026-10-28/),
  ]);
});

test("a body that is not JSON, not text or too long is refused first", async () => {
  const { deliver } = await deployment();
  expect((await deliver("{}", "t=1,v1=0", "text/plain")).status).toBe(415);
  expect((await deliver(" ".repeat(1024 * 1024 + 1))).status).toBe(413);
});

test("a deployment without a Stripe account has no such routes", async () => {
  const { call, admin, ask } = await openTenant();
  const headers = { "content-type": "application/json", "stripe-signature": "t=1,v1=0" };
  const reply = await ask("/v1/stripe/webhook", { method: "POST", headers, body: "{}" });
  expect(reply.status).toBe(404);
  const checkout = { amount_micros: 5_000_000, success_url: "https://example.com/paid" };
  const { status, body } = await call(admin, "POST /v1/checkouts", checkout);
  expect([status, body.error.message]).toEqual([404, expect.stringContaining("takes no payments")]);
});

test("a checkout names the organisation on the session and on the payment, and is created once per key", async () => {
  const made = {
    ...sessionOf({ mark: "x", cents: 2500, metadata: {} }),
    url: "https://checkout.stripe.com/c/pay/cs_test_x",
  };
  const { tenant, ask, asked, orgId } = await deployment(() => made);
  const headers = {
    authorization: `Bearer ${tenant.admin}`,
    "content-type": "application/json",
    "idempotency-key": "pay",
  };
  const body = JSON.stringify({ amount_micros: 25_000_000, success_url: "https://example.com/paid" });
  const reply = await ask("/v1/checkouts", { method: "POST", headers, body });
  expect([reply.status, await reply.json()]).toEqual([
    201,
    {
      ...{ object: "checkout", id: "cs_test_x", url: "https://checkout.stripe.com/c/pay/cs_test_x" },
      ...{ amount_micros: 25_000_000, expires_at: 1_792_086_400 },
    },
  ]);
  const sent = new URLSearchParams(asked[0]?.body);
  expect(asked[0]?.url).toBe("https://api.stripe.com/v1/checkout/sessions");
  expect(sent.get("metadata[rollcall_organization]")).toBe(orgId);
  expect(sent.get("payment_intent_data[metadata][rollcall_organization]")).toBe(orgId);
  expect([sent.get("line_items[0][price_data][unit_amount]"), sent.get("line_items[0][price_data][currency]")]).toEqual(
    ["2500", "usd"],
  );
  await ask("/v1/checkouts", { method: "POST", headers, body });
  const keys = asked.map(({ headers: one }) => one.get("idempotency-key"));
  expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
  expect(keys[1]).toBe(keys[0]);
});

test("Stripe's refusal of a checkout is shown, and an amount that is not whole cents is refused here", async () => {
  const refusal = (type: string) => {
    return () => Response.json({ error: { type, message: "Not a valid URL" } }, { status: 400 });
  };
  const ask = async (type: string, amount_micros: number) => {
    const { tenant, ask: send } = await deployment(refusal(type));
    const headers = { authorization: `Bearer ${tenant.admin}`, "content-type": "application/json" };
    const body = JSON.stringify({ amount_micros, success_url: "https://example.com/paid" });
    const reply = await send("/v1/checkouts", { method: "POST", headers, body });
    const { error } = await reply.json<{ error: { code: string; message: string } }>();
    return [reply.status, error.code, error.message];
  };
  expect(await ask("invalid_request_error", 1_000_000)).toEqual([
    400,
    "invalid_request",
    expect.stringContaining("Not a valid URL"),
  ]);
  expect(await ask("idempotency_error", 1_000_000)).toEqual([422, "idempotency_conflict", expect.any(String)]);
  expect(await ask("", 1_000_001)).toEqual([400, "invalid_request", expect.stringContaining("whole cents")]);
});
