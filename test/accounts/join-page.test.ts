/** The link of an invitation, and the page that it opens. */
import { expect, test } from "vitest";
import { openTenant } from "./tenant.ts";

const REQUEST = { email: "ann@example.com", role: "developer" };
const matches = (text: string, pattern: RegExp) => Array.from(text.matchAll(pattern), ([, found = ""]) => found);

async function pageServed(): Promise<{ text: string; headers: Headers }> {
  const { app } = await openTenant();
  const reply = await app.request("/join");
  return { text: await reply.text(), headers: reply.headers };
}

test("an invitation's link leads to the platform of the request, with the token after the #", async () => {
  const { call, admin, app } = await openTenant();
  const { token, url } = (await call(admin, "POST /v1/invitations", REQUEST)).body;
  expect(url).toBe(`http://platform.test/join#${token}`);
  const reply = await app.request(new Request(url));
  expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  expect(await reply.text()).not.toContain(token);
});

test("the reply to a repeat and a list contain no link", async () => {
  const { call, admin } = await openTenant();
  const again = () => call(admin, "POST /v1/invitations", REQUEST, { "idempotency-key": "once" });
  expect((await again()).body.url).toMatch(/\/join#rki_/);
  expect((await again()).body).toMatchObject({ token: null, url: null });
  expect((await call(admin, "GET /v1/invitations")).body.data[0]).not.toHaveProperty("url");
});

test("the page loads nothing and runs only the script in its policy, which may only call this platform", async () => {
  const { text, headers } = await pageServed();
  expect(text).not.toMatch(/<(img|link|iframe|object)\b|\s(on\w+|style|src|href)=|@import|url\(|innerHTML|eval\(/i);
  const [style = "", ...styles] = matches(text, /<style>([\s\S]*?)<\/style>/g);
  const [script = "", ...scripts] = matches(text, /<script>([\s\S]*?)<\/script>/g);
  expect([styles, scripts]).toEqual([[], []]);
  const rest = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  expect(headers.get("content-security-policy")).toBe(
    `default-src 'none'; style-src '${await hashOf(style)}'; script-src '${await hashOf(script)}'; connect-src 'self'; ${rest}`,
  );
});

test("the page is accessible by names, and contains every element that its script fills", async () => {
  const { text } = await pageServed();
  const ids = matches(text, /\sid="([^"]+)"/g);
  expect(new Set(ids).size).toBe(ids.length);
  const wanted = matches(text, /\bat\("([^"]+)"\)/g);
  expect(wanted.length).toBeGreaterThan(5);
  expect(wanted.filter((id) => !ids.includes(id))).toEqual([]);
  const inputs = matches(text, /<input id="([^"]+)"/g);
  expect(matches(text, /<label for="([^"]+)"/g)).toEqual(inputs);
  expect(text).toMatch(/role="alert"/);
});

async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}`;
}
