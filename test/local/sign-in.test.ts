/** Signing in over a real socket: at which addresses and pages a cookie of the local platform counts. */
import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { launchBrowser, signIn, textOf } from "../web/browser.ts";
import { testPort } from "./test-port.ts";

let platform: Platform;
let port: number;
let cookie: string;

type Headers = Readonly<Record<string, string>>;

/** Sends the headers as given: `fetch` would set Host, Origin and Sec-Fetch-Site itself. */
function send(method: string, path: string, headers: Headers, body?: object): Promise<{ status: number; set: string }> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const asked = request({ host: "127.0.0.1", port, method, path, headers: { ...headers, ...type } }, (reply) => {
      reply.resume().once("end", () => {
        resolve({ status: reply.statusCode ?? 0, set: reply.headers["set-cookie"]?.[0] ?? "" });
      });
    });
    asked.once("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const own = () => `http://127.0.0.1:${port}`;

beforeAll(async () => {
  platform = await bootPlatform({ directory: null, port: testPort(71), atRest: true, log: () => undefined });
  port = Number(new URL(platform.url).port);
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const { code, url } = await client.sessions.createCode();
  expect(url).toBe(`${own()}/sign-in#code=${code}`);
  const foreign = await send("POST", "/v1/session", { origin: "http://127.0.0.1:3000" }, { code });
  expect([foreign.status, foreign.set]).toEqual([403, ""]);
  const signed = await send("POST", "/v1/session", { origin: own() }, { code });
  expect(signed.status).toBe(201);
  cookie = signed.set.split(";")[0] ?? "";
  expect(cookie).toMatch(new RegExp(`^rollcall-${port}=rks_`));
});
afterAll(() => platform.stop());

const SAME = { "sec-fetch-site": "same-origin" };
const names = (text: string) => text.replace("PORT", String(port));

test.each([
  ["the page's own read", {}, 200],
  ["a read from another local port", { "sec-fetch-site": "same-site" }, 403],
  ["a name that somebody made lead here", { host: "rebound.test:PORT" }, 401],
  ["the same without a port", { host: "rebound.test" }, 401],
  ["another port's name", { host: "127.0.0.1:1" }, 401],
  ["an address that ends in ours", { host: "127.0.0.1.rebound.test:PORT" }, 401],
  ["another name for what Host says", { host: "rebound.test:PORT", "x-forwarded-host": "127.0.0.1:PORT" }, 401],
])("%s is let in or refused as the cookie says", async (_, given, status) => {
  const changes = Object.fromEntries(Object.entries(given).map(([name, text]) => [name, names(text)]));
  expect((await send("GET", "/v1/whoami", { cookie, ...SAME, ...changes })).status).toBe(status);
});

test("only the platform's own page can change something with the cookie", async () => {
  const change = (headers: Headers) => send("PATCH", "/v1/organization", { cookie, ...headers }, { name: "local" });
  const others = [{}, { origin: "null" }, { origin: "http://127.0.0.1:3000" }, { origin: `http://localhost:${port}` }];
  for (const headers of others) expect((await change(headers)).status, JSON.stringify(headers)).toBe(403);
  expect((await change({ origin: own() })).status).toBe(200);
  // The local runtime trusts this header. A page on another host can send it, but with its own Origin and no cookie.
  const rebound = { host: `rebound.test:${port}`, origin: `http://rebound.test:${port}` };
  const claims = { ...rebound, "mf-original-url": `${own()}/v1/session` };
  expect((await send("POST", "/v1/session", claims, { key: platform.key })).status).toBe(403);
});

test("a browser signs in with a one-time link and shows the first steps without an error", async () => {
  const browser = await launchBrowser();
  try {
    const { page, wrong } = await signIn(browser, platform, "/");
    expect(await textOf(page.locator("h1"))).toBe("Home");
    expect(await textOf(page.getByRole("region", { name: "First steps" }))).toContain("npx --no-install rollcall eval");
    expect(wrong).toEqual([]);
  } finally {
    await browser.close();
  }
});
