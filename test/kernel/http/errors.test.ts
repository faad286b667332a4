import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { ERROR_CODES, STATUS_OF } from "../../../src/contract/api-error.ts";
import { formatPath } from "../../../src/core/field-path.ts";
import { openTestApi } from "./test-api.ts";

test("an exception is a 500 that tells the caller nothing about it, and is reported", async () => {
  const secret = new Error("D1_ERROR: near password");
  const { ask, reported } = await openTestApi({
    readRun: async () => {
      throw secret;
    },
  });
  const reply = await ask("/v1/runs/run_x");
  expect(reply.status).toBe(500);
  const text = await reply.text();
  expect(JSON.parse(text).error).toMatchObject({ code: "internal", type: "server_error" });
  expect(text).not.toContain("password");
  expect(reported).toEqual([secret]);
});

test("every code that a service may return is sent with its status and all four members", async () => {
  for (const code of ERROR_CODES) {
    const { app, token } = await openTestApi({
      readRun: async () => ({ ok: false, error: { code, message: "why", param: "field" } }),
    });
    // Without the check of replies, because no single route is documented with every code.
    const authorization = `Bearer ${token}`;
    const reply = await app.request("/v1/runs/run_x", { headers: { authorization } }, env);
    const [status, type] = STATUS_OF[code];
    expect(reply.status, code).toBe(status);
    expect(await reply.json()).toEqual({ error: { code, message: "why", param: "field", type } });
    const waits: Record<string, string> = { in_progress: "1", rate_limited: "1", unavailable: "2" };
    expect(reply.headers.get("retry-after"), code).toBe(waits[code] ?? null);
  }
});

test("an unknown path is 404", async () => {
  const { ask } = await openTestApi();
  const reply = await ask("/v1/nothing");
  expect(reply.status).toBe(404);
  expect(await reply.json()).toMatchObject({ error: { code: "not_found", param: null } });
});

test("a known path with another method is 405 and names the allowed methods", async () => {
  const { ask } = await openTestApi();
  const run = await ask("/v1/runs/run_x", { method: "PUT" });
  expect(run.status).toBe(405);
  expect(run.headers.get("allow")).toBe("GET, PATCH, DELETE");
  const runs = await ask("/v1/runs", { method: "PUT" });
  expect(runs.headers.get("allow")).toBe("POST, GET");
});

test("every reply has an x-request-id: the caller's own if it is valid", async () => {
  const { ask } = await openTestApi();
  const own = await ask("/healthz", { headers: { "x-request-id": "ci-42:a.b" } });
  expect(own.headers.get("x-request-id")).toBe("ci-42:a.b");
  for (const path of ["/healthz", "/v1/nothing", "/v1/runs/run_x"]) {
    const reply = await ask(path, { headers: { "x-request-id": "<script>" } });
    expect(reply.headers.get("x-request-id"), path).toMatch(/^[0-9a-f-]{36}$/);
  }
});

test("a path is written in its usual form", () => {
  expect(formatPath(["sampling", "temprature"])).toBe("sampling.temprature");
  expect(formatPath(["rows", 16, "question"])).toBe("rows[16].question");
  expect(formatPath(["metadata", "a b"])).toBe('metadata["a b"]');
});
