import { expect, test } from "vitest";
import update from "../../examples/triggers/huggingface-update.json" with { type: "json" };
import { faultInSecret } from "../../src/contract/signing-secret.ts";
import { verifyDelivery } from "../../src/triggers/verify-delivery.ts";
import { githubSignature, standardHeaders } from "./signing.ts";

const NOW = 1_764_000_000_000;
/** Signed by the standard's own libraries. */
const VECTOR = {
  secret: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
  id: "msg_000001",
  body: '{"type":"batch.ready","timestamp":"2025-11-24T16:00:00.000Z","data":{"id":"b_000042"}}',
  signature: "v1,cGBcLWlg8dvesATzcVXOZZryj3pS/bhQHVtHtzB7oa8=",
};
const { secret, id, body, signature } = VECTOR;
const SIGNED = { "webhook-id": id, "webhook-timestamp": "1764000000", "webhook-signature": signature };

function standard(headers: Record<string, string>, { text = body, now = NOW, by = secret } = {}) {
  return verifyDelivery({ scheme: "standard", secret: by, headers: new Headers(headers), body: text, now });
}

async function codeOf(verified: ReturnType<typeof verifyDelivery>): Promise<string | null> {
  const result = await verified;
  return result.ok ? null : result.error.code;
}

test("the standard's own test vector is accepted, with its id and type, also among other signatures", async () => {
  expect(await standard(SIGNED)).toEqual({
    ok: true,
    value: { ids: [id], event: "batch.ready", ping: false, payload: JSON.parse(body) },
  });
  const several = `v1a,AAAA v1,AAAA v1,bm90IGl0 ${signature}`;
  expect((await standard({ ...SIGNED, "webhook-signature": several })).ok).toBe(true);
  expect(
    (await standard(standardHeaders("a plain text secret", "m1", body, NOW), { by: "a plain text secret" })).ok,
  ).toBe(true);
});

test("parsing a verified sender's body takes a counted scheduling turn, and exact numbers count more", async () => {
  const counted: number[] = [];
  const takeTurn = async () => (steps: number) => void counted.push(steps);
  const ask = (text: string, headers: Record<string, string>) =>
    verifyDelivery({ scheme: "standard", secret, headers: new Headers(headers), body: text, now: NOW, takeTurn });
  const large = `[${"1e400,".repeat(1000)}1]`;
  expect((await ask(body, SIGNED)).ok).toBe(true);
  expect((await ask(large, standardHeaders(secret, "m1", large, NOW))).ok).toBe(true);
  expect(counted[0]).toBeLessThan(1000);
  expect(counted[1]).toBeGreaterThan(20 * large.length);
  await ask(large, SIGNED);
  expect(counted).toHaveLength(2);
});

const KEY = secret.slice("whsec_".length);
const OTHER = `whsec_${"B".repeat(43)}=`;

test.each([
  secret,
  KEY,
  KEY.replace("=", ""),
  `v1,${secret}`,
  `v1,whsec_${KEY.replace("=", "")}`,
  `  ${secret}\n`,
  `\tv1,${secret} `,
  `${OTHER} ${secret}`,
  `v1,${OTHER}  v1,${secret}`,
  `v1,${OTHER}|v1,${secret}`,
  `${OTHER}\n${secret}\n`,
])("one secret works however it is written: %j", async (by) => {
  expect(faultInSecret("standard", by)).toBe(null);
  expect((await standard(SIGNED, { by })).ok).toBe(true);
  expect(await codeOf(standard(SIGNED, { by, text: `${body} ` }))).toBe("invalid_signature");
});

test("a text that is also base64 works as either, and any other text as itself", async () => {
  const bare = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
  for (const key of [bare, `whsec_${bare}`]) {
    expect((await standard(standardHeaders(key, "m1", body, NOW), { by: bare })).ok).toBe(true);
  }
  expect(await codeOf(standard(standardHeaders(bare, "m1", body, NOW), { by: `whsec_${bare}` }))).toBe(
    "invalid_signature",
  );
});

test.each([
  "whsec_short",
  `whsec_${"A".repeat(25)}`,
  "whsec_not-base64url_at_all_here",
  `whsec_${"A".repeat(30)}===`,
  `WHSEC_${KEY}`,
  `"${secret}"`,
  `SECRET=${secret}`,
  `v2,${secret}`,
  `v1, ${secret}`,
  `v1,${KEY}`,
  `v1a,whpk_${KEY}`,
  `whsk_${KEY}`,
  `${secret},${OTHER}`,
  `${secret} a-plain-text-secret`,
  Array.from({ length: 9 }, () => secret).join(" "),
  "two plain texts with spaces",
  "not-ascii-£££££££££",
  "               short               ",
])("a secret that cannot be used for signing is refused when it is set: %j", (by) => {
  expect(faultInSecret("standard", by)).toEqual(expect.any(String));
});

test.each(["github", "huggingface"])("for %s a secret is a text, whatever it looks like", (scheme) => {
  for (const text of ["whsec_short_text_of_mine", `v1,${secret}`, "0123456789abcdef"]) {
    expect(faultInSecret(scheme, text)).toBe(null);
  }
  for (const text of [` ${secret}`, `${secret}\n`, "separate several by spaces", "short", "not-ascii-£££££££££"]) {
    expect(faultInSecret(scheme, text)).toEqual(expect.any(String));
  }
});

test("another body, id, time or secret, and no signature at all are invalid_signature", async () => {
  const wrong = [
    standard(SIGNED, { text: `${body} ` }),
    standard({ ...SIGNED, "webhook-id": "msg_000002" }),
    standard({ ...SIGNED, "webhook-timestamp": "1764000001" }),
    standard(SIGNED, { by: "whsec_AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" }),
    standard({ ...SIGNED, "webhook-signature": "v1," }),
    standard({ ...SIGNED, "webhook-signature": `v2,${signature.slice(3)}` }),
    standard({}),
    standard(standardHeaders(secret, "with.dot", body, NOW)),
  ];
  for (const one of wrong) expect(await codeOf(one)).toBe("invalid_signature");
});

test("a signature is valid for 300 seconds before and after its time, and is then stale", async () => {
  for (const now of [NOW - 300_000, NOW + 300_000]) expect((await standard(SIGNED, { now })).ok).toBe(true);
  for (const now of [NOW - 301_000, NOW + 301_000])
    expect(await codeOf(standard(SIGNED, { now }))).toBe("stale_timestamp");
});

function github(text: string, headers: Record<string, string>, by = "It's a Secret to Everybody") {
  return verifyDelivery({ scheme: "github", secret: by, headers: new Headers(headers), body: text, now: NOW });
}

test("GitHub's own test vector is accepted as signed, and then refused since it is not JSON", async () => {
  const hex = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
  const headers = { "x-hub-signature-256": `sha256=${hex}`, "x-github-delivery": "d1", "x-github-event": "push" };
  expect(await github("Hello, World!", headers)).toMatchObject({ ok: false, error: { code: "invalid_request" } });
  expect(await codeOf(github("Hello, World?", headers))).toBe("invalid_signature");
  expect(await codeOf(github("Hello, World!", { ...headers, "x-hub-signature-256": hex }))).toBe("invalid_signature");
});

test("GitHub's deliveries are recognised by their id and their signed body, and a ping is recognised", async () => {
  const sent = (event: string, delivery: string) => ({
    "x-hub-signature-256": githubSignature("It's a Secret to Everybody", "{}"),
    ...{ "x-github-delivery": delivery, "x-github-event": event },
  });
  const first = await github("{}", sent("push", "d1"));
  const other = await github("{}", sent("push", "d2"));
  expect(first).toMatchObject({ ok: true, value: { event: "push", ping: false } });
  if (!first.ok || !other.ok) throw new Error("not signed");
  expect([first.value.ids[0], other.value.ids[0]]).toEqual(["d1", "d2"]);
  expect(first.value.ids[1]).toBe(other.value.ids[1]);
  expect(await github("{}", sent("ping", "d3"))).toMatchObject({ value: { ping: true } });
});

function hub(payload: object, by?: string) {
  return hubText(JSON.stringify(payload), by);
}

function hubText(text: string, by = update.headers["x-webhook-secret"]) {
  const headers = new Headers(update.headers);
  return verifyDelivery({ scheme: "huggingface", secret: by, headers, body: text, now: NOW });
}

async function idOf(payload: object): Promise<string> {
  const verified = await hub(payload);
  if (!verified.ok) throw new Error(verified.error.message);
  return verified.value.ids[0];
}

test("Hugging Face's deliveries are recognised by their commit, or else by their body", async () => {
  const { body: sent } = update;
  const known = await idOf(sent);
  expect(known).toMatch(/^hf_[0-9a-f]{40}$/);
  const retagged = { ...sent, repo: { ...sent.repo, tags: [] }, webhook: { ...sent.webhook, id: "another" } };
  expect(await idOf(retagged)).toBe(known);
  expect(await idOf({ ...sent, repo: { ...sent.repo, headSha: "0".repeat(40) } })).not.toBe(known);
  const settings = { ...sent, event: { action: "update", scope: "repo.config" } };
  const twice = [
    idOf({ ...settings, updatedConfig: { private: true } }),
    idOf({ ...settings, updatedConfig: { private: false } }),
  ];
  expect(new Set(await Promise.all(twice)).size).toBe(2);
  expect(await idOf([])).toMatch(/^sha256_/);
  const deep = JSON.stringify({ ...sent, updatedRefs: "deep" }).replace('"deep"', "[".repeat(1e5) + "]".repeat(1e5));
  expect(await hubText(deep)).toMatchObject({ value: { ids: [expect.stringMatching(/^sha256_/)] } });
  expect(await hub(sent)).toMatchObject({ ok: true, value: { event: "repo.content.update" } });
  expect(await codeOf(hub(sent, "another secret"))).toBe("invalid_signature");
});
