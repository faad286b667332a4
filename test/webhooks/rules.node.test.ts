/** The rules for deliveries: when to try, how to interpret answers, what to send. The library verifies signatures. */
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { LIMITS } from "../../src/contract/limits.ts";
import { signedHeaders } from "../../src/kernel/kit/sign-webhook.ts";
import { ATTEMPTS, bodyOf, messageId, nextAttemptAt, verdictOf, wants } from "../../src/webhooks/rules.ts";

const NOW = 1_764_000_000_000;
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

test("a signature matches the specification's test vector, and the library accepts either secret of a rotation", () => {
  const body = '{"type":"batch.ready","timestamp":"2025-11-24T16:00:00.000Z","data":{"id":"b_000042"}}';
  expect(signedHeaders(SECRET, "msg_000001", body, NOW)).toEqual({
    "webhook-id": "msg_000001",
    "webhook-timestamp": "1764000000",
    "webhook-signature": "v1,cGBcLWlg8dvesATzcVXOZZryj3pS/bhQHVtHtzB7oa8=",
  });
  const headers = signedHeaders([OTHER, SECRET], "msg_1", body, Date.now());
  expect(headers["webhook-signature"]?.split(" ")).toHaveLength(2);
  for (const secret of [SECRET, OTHER]) expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
  expect(() => new Webhook(SECRET).verify(`${body} `, headers)).toThrow("No matching signature");
});

test("a secret with its version prefix signs like the same secret without it", () => {
  const signed = (secret: string) => signedHeaders(secret, "msg_1", "{}", NOW)["webhook-signature"];
  for (const written of [`v1,${SECRET}`, ` ${SECRET}\n`, SECRET.replace("=", ""), `v1,${SECRET} ${OTHER}`]) {
    expect(signed(written)).toBe(signed(SECRET));
  }
  expect(signed("v1,plain-text-of-mine")).not.toBe(signed("plain-text-of-mine"));
  expect(() => signed("whsec_")).toThrow("a signing secret must be text, or whsec_ and base64");
});

test("a delivery is tried ten times over 75 to 84 hours, and not again", () => {
  const waits: number[] = [];
  let [made, at] = [0, NOW];
  for (let next = nextAttemptAt("msg_1", made, at); next !== null; next = nextAttemptAt("msg_1", made, at)) {
    waits.push((next - at) / 1000);
    [made, at] = [made + 1, next];
  }
  expect(waits).toHaveLength(ATTEMPTS);
  const plain = [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
  for (const [index, wait] of waits.entries()) {
    expect(wait).toBeGreaterThanOrEqual(plain[index] ?? 0);
    expect(wait).toBeLessThanOrEqual((plain[index] ?? 0) * 1.1 + 0.001);
  }
});

const answered = (status: number, retryAfter: string | null = null) => ({ status, retryAfter, text: "" });

test.each([
  [answered(200), { kind: "delivered" }],
  [answered(204), { kind: "delivered" }],
  [answered(302), { kind: "failed", why: "answered 302: redirects are not followed", rest_ms: null }],
  [answered(410), { kind: "gone" }],
  [answered(429, "7"), { kind: "failed", rest_ms: 7000 }],
  [answered(503, "Mon, 24 Nov 2025 16:01:00 GMT"), { kind: "failed", rest_ms: 60_000 }],
  [answered(502, "999999999999"), { kind: "failed", rest_ms: 86_400_000 }],
  [answered(504, "0"), { kind: "failed", rest_ms: 1000 }],
  [answered(429, "soon"), { kind: "failed", rest_ms: null }],
  [answered(500, "7"), { kind: "failed", rest_ms: null }],
  [{ error: "refused" }, { kind: "failed", why: "refused", rest_ms: null }],
])("an answer %j means %j", (answer, verdict) => {
  expect(verdictOf(answer, NOW)).toMatchObject(verdict);
});

test("an endpoint wants the names it lists, all of a family, or everything", () => {
  expect(wants(null, "run.completed")).toBe(true);
  expect(wants(["run.*", "batch.dead"], "run.failed")).toBe(true);
  expect(wants(["run.*", "batch.dead"], "batch.dead")).toBe(true);
  expect(wants(["run.*", "batch.dead"], "batch.ready")).toBe(false);
  expect(wants(["run.*"], "runner.x")).toBe(false);
});

test("a body has both times, and a body that would be too long has ids and the path of the rest", () => {
  const event = { id: "evt_1_2", type: "run.failed", at: NOW, subject: "run_1", path: "/v1/runs/run_1" };
  const body = JSON.parse(bodyOf({ ...event, data: { run_id: "run_1" } }));
  expect(body).toEqual({
    ...{ id: "evt_1_2", object: "event", type: "run.failed", timestamp: "2025-11-24T16:00:00.000Z" },
    ...{ created_at: 1_764_000_000, data: { run_id: "run_1" } },
  });
  const long = bodyOf({ ...event, data: { run_id: "run_1", error: "é".repeat(15_000) } });
  expect(JSON.parse(long).data).toEqual({ run_id: "run_1", thin: true, path: "/v1/runs/run_1" });
  expect(messageId(event, "whe_9")).toBe("msg_1_2_9");
});

test("of an event that would be too long at most 32 short members are sent", () => {
  const short = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`m${n}`, "x".repeat(190)]));
  const event = { id: "evt_1_2", type: "run.failed", at: NOW, subject: "run_1", data: short };
  const body = bodyOf(event);
  const { thin, path, ...kept } = JSON.parse(body).data;
  expect([Object.keys(kept).length, thin, path]).toEqual([32, true, null]);
  expect(body.length).toBeLessThanOrEqual(LIMITS.webhookBodyBytes);
});
