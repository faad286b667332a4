/** The security headers of every reply, for browsers and pages of other origins. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RUN } from "./examples.ts";
import { openTestApi } from "./test-api.ts";

const readRun = async () => ({ ok: true, value: RUN }) as const;

test.each([
  ["GET", "/v1/runs/run_x", 200, "no-store"],
  ["GET", "/v1/nothing", 404, "no-store"],
  ["PATCH", "/v1/secrets", 405, "no-store"],
  ["GET", "/docs", 200, null],
  ["GET", "/join", 200, null],
  ["GET", "/healthz", 200, null],
])("%s %s is not sniffed, framed, or given a referrer", async (method, path, status, cache) => {
  const { ask } = await openTestApi({ readRun });
  const { headers, status: got } = await ask(path, { method });
  const names = ["x-content-type-options", "referrer-policy", "cache-control", "strict-transport-security"];
  expect(names.map((name) => headers.get(name))).toEqual(["nosniff", "no-referrer", cache, null]);
  expect(headers.get("content-security-policy")).toMatch(/default-src 'none';.*frame-ancestors 'none'/);
  expect([got, headers.get("x-request-id")]).toEqual([status, expect.any(String)]);
});

test("over https, every reply tells a browser to use https from then on, refusals too", async () => {
  const { app } = await openTestApi();
  for (const path of ["/healthz", "/v1/runs"]) {
    const reply = await app.request(`https://platform.test${path}`, {}, env);
    expect(reply.headers.get("strict-transport-security")).toBe("max-age=31536000");
  }
});

test("no page of another origin is admitted: a preflight is refused, and no reply has a CORS header", async () => {
  const { ask } = await openTestApi({ readRun });
  const headers = { origin: "https://other.example", "access-control-request-method": "GET" };
  const replies = [
    await ask("/v1/runs", { method: "OPTIONS", headers }),
    await ask("/v1/nothing", { method: "OPTIONS", headers }),
    await ask("/v1/runs/run_x", { headers }),
    await ask("/openapi.json", { headers }),
  ];
  expect(replies.map(({ status }) => status)).toEqual([405, 404, 200, 200]);
  for (const reply of replies) {
    expect([...reply.headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
  }
});
