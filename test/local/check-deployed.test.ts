/** The findings for a server that stands in for a deployed platform. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { checkDeployed } from "../../src/local/check-deployed.ts";

const GOOD = {
  "GET /healthz": [200, { status: "ok" }],
  "GET /readyz": [200, { status: "ready", checks: [] }],
  "GET /openapi.json": [200, { openapi: "3.1.0", info: { version: "1" } }],
  "POST /v1/bootstrap": [404, { error: { code: "not_found" } }],
  "GET /v1/whoami": [200, { object: "caller" }],
} as const;

type Answers = Readonly<Record<string, readonly [status: number, body: object | string]>>;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** The findings for a good platform with these changed answers. */
async function findings(answers: Answers, key: string | undefined = "rk_a") {
  const asked: string[] = [];
  const known: Answers = { ...GOOD, ...answers };
  server = createServer(({ method, url, headers }, response) => {
    const [status, body] = known[`${method} ${url}`] ?? [500, "?"];
    asked.push(`${method} ${url} ${headers.authorization ?? ""}`.trim());
    response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await new Promise<void>((listening) => server?.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const found = await checkDeployed(`http://127.0.0.1:${port}`, key);
  return { found: found.map(({ level, what }) => [level, what.replace(/http:[^ ]*/, "URL")]), asked };
}

test("a good platform has no findings, and only whoami receives the key", async () => {
  const { found, asked } = await findings({});
  expect(found).toEqual([]);
  expect(asked.sort()).toEqual([
    "GET /healthz",
    "GET /openapi.json",
    "GET /readyz",
    "GET /v1/whoami Bearer rk_a",
    "POST /v1/bootstrap",
  ]);
});

test("a platform that is not healthy gets no further requests", async () => {
  const { found, asked } = await findings({ "GET /healthz": [503, { error: { code: "storage_full" } }] });
  expect(found).toEqual([["error", "URL does not answer like a platform: /healthz says 503 storage_full"]]);
  expect(asked).toEqual(["GET /healthz"]);
});

test("each failed check of /readyz is an error, and a platform without /readyz is one too", async () => {
  const checks = [
    { name: "secret", ok: false, problem: "ROLLCALL_SECRET must be 64 hex digits" },
    { name: "database", ok: false, problem: "its newest migration is none, but this release needs 0001_a.sql" },
    { name: "queues", ok: true, problem: null },
    { name: "moon", ok: false, problem: "not full" },
  ];
  const { found } = await findings({ "GET /readyz": [503, { status: "not_ready", checks }] });
  expect(found).toEqual([
    ["error", "URL is not ready: secret: ROLLCALL_SECRET must be 64 hex digits"],
    ["error", "URL is not ready: database: its newest migration is none, but this release needs 0001_a.sql"],
    ["error", "URL is not ready: moon: not full"],
  ]);
  const older = await findings({ "GET /readyz": [404, { error: { code: "not_found" } }] });
  expect(older.found).toEqual([["error", "URL is not ready: /readyz says 404 not_found"]]);
});

test("another version of the API, and a server that is not a platform, are errors", async () => {
  const other = await findings({ "GET /openapi.json": [200, { info: { version: "2" } }] });
  expect(other.found).toEqual([["error", "URL speaks version 2 of the API, and this Rollcall version 1"]]);
  const page = await findings({ "GET /openapi.json": [200, "<html>"] });
  expect(page.found).toEqual([
    ["error", "URL speaks an unknown version (it says 200) of the API, and this Rollcall version 1"],
  ]);
});

test("an open bootstrap route and a key that is not accepted are reported", async () => {
  const { found } = await findings({
    "POST /v1/bootstrap": [401, { error: { code: "unauthorized" } }],
    "GET /v1/whoami": [401, { error: { code: "unauthorized" } }],
  });
  expect(found).toEqual([
    ["warning", "the bootstrap route is still open: /v1/bootstrap says 401 unauthorized"],
    ["error", "the key in ROLLCALL_API_KEY is not accepted: /v1/whoami says 401 unauthorized"],
  ]);
});

test("without a key none is checked, and that is reported", async () => {
  const { found, asked } = await findings({}, "");
  expect(found).toEqual([["warning", "no key was checked"]]);
  expect(asked.filter((line) => line.includes("whoami"))).toEqual([]);
});

test("a key that is not valid in a header is not shown", async () => {
  const { found } = await findings({}, "rk_a\nrk_b");
  expect(found).toEqual([["error", "ROLLCALL_API_KEY is not a valid key: does it contain spaces or line breaks?"]]);
});
