import { expect, test } from "vitest";
import * as z from "zod";
import { ApiError, ERROR_CODES, STATUS_OF } from "../../../src/contract/api-error.ts";
import { PAGES } from "../../../src/contract/pages.ts";
import { RunReport } from "../../../src/contract/report.ts";
import { SchemaCollection } from "../../../src/kernel/http/openapi/json-schema.ts";
import {
  type Content,
  type DocumentedOperation,
  isRefusal,
  type OpenApiDocument,
  openApiOf,
} from "../../../src/kernel/http/openapi/openapi.ts";
import { ASSET_PATHS } from "../../../src/kernel/http/pages.ts";
import { OPERATIONS } from "../../../src/slices.ts";
import { openTestApi } from "./test-api.ts";

async function documentServed(): Promise<OpenApiDocument> {
  const { ask } = await openTestApi();
  return (await ask("/openapi.json")).json<OpenApiDocument>();
}

const documented = (paths: OpenApiDocument["paths"]) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );

async function everyOperation(): Promise<DocumentedOperation[]> {
  return Object.values((await documentServed()).paths).flatMap((methods) => Object.values(methods));
}

test("every route is documented and every documented route exists", async () => {
  const { paths } = await documentServed();
  const { app } = await openTestApi();
  const routed = app.routes
    .filter(({ method }) => method !== "ALL")
    .filter(({ path }) => path !== ASSET_PATHS && !PAGES.some((page) => page === path))
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  expect(new Set(documented(paths))).toEqual(new Set(routed));
  expect(documented(paths).sort()).toMatchInlineSnapshot(`
    [
      "DELETE /npm/-/package/{id}/dist-tags/{tag}",
      "DELETE /npm/-/package/{scope}/{id}/dist-tags/{tag}",
      "DELETE /npm/-/user/token/{token}",
      "DELETE /v1/budgets/{id}",
      "DELETE /v1/dataset-uploads/{id}",
      "DELETE /v1/datasets/{id}",
      "DELETE /v1/endpoints/{id}",
      "DELETE /v1/environments/{id}/tags/{tag}",
      "DELETE /v1/fleets/{id}",
      "DELETE /v1/fleets/{id}/replicas/{replica}",
      "DELETE /v1/invitations/{id}",
      "DELETE /v1/keys/{id}",
      "DELETE /v1/organization",
      "DELETE /v1/people/{id}",
      "DELETE /v1/projects/{id}",
      "DELETE /v1/report-links/{id}",
      "DELETE /v1/rollouts/{id}/review",
      "DELETE /v1/runs/{id}",
      "DELETE /v1/secrets/{id}",
      "DELETE /v1/session",
      "DELETE /v1/sessions/{id}",
      "DELETE /v1/triggers/{id}",
      "DELETE /v1/webhook-endpoints/{id}",
      "GET /docs",
      "GET /healthz",
      "GET /join",
      "GET /metrics",
      "GET /model/{id}/v1/models",
      "GET /npm/-/package/{id}/dist-tags",
      "GET /npm/-/package/{scope}/{id}/dist-tags",
      "GET /npm/-/ping",
      "GET /npm/-/whoami",
      "GET /npm/{id}",
      "GET /npm/{id}/-/{file}",
      "GET /npm/{scope}/{id}",
      "GET /npm/{scope}/{id}/-/{file}",
      "GET /openapi.json",
      "GET /python/{owner}/files/{file}",
      "GET /python/{owner}/simple/",
      "GET /python/{owner}/simple/{id}",
      "GET /python/{owner}/simple/{id}/",
      "GET /readyz",
      "GET /v1/agreements",
      "GET /v1/audit-log",
      "GET /v1/balance",
      "GET /v1/budgets",
      "GET /v1/budgets/{id}",
      "GET /v1/dataset-uploads",
      "GET /v1/dataset-uploads/{id}",
      "GET /v1/datasets",
      "GET /v1/datasets/{id}",
      "GET /v1/datasets/{id}/rows",
      "GET /v1/deletions",
      "GET /v1/deletions/{id}",
      "GET /v1/endpoints",
      "GET /v1/endpoints/{id}",
      "GET /v1/environments",
      "GET /v1/environments/{id}",
      "GET /v1/environments/{id}/grant",
      "GET /v1/environments/{id}/package",
      "GET /v1/environments/{id}/readme",
      "GET /v1/environments/{id}/results",
      "GET /v1/environments/{id}/versions",
      "GET /v1/fleets",
      "GET /v1/fleets/{id}",
      "GET /v1/fleets/{id}/replicas",
      "GET /v1/fleets/{id}/replicas/{replica}",
      "GET /v1/invitations",
      "GET /v1/keys",
      "GET /v1/keys/{id}",
      "GET /v1/ledger",
      "GET /v1/ledger/verification",
      "GET /v1/organization",
      "GET /v1/organizations",
      "GET /v1/people",
      "GET /v1/prices",
      "GET /v1/projects",
      "GET /v1/projects/{id}",
      "GET /v1/rollouts/{id}",
      "GET /v1/rollouts/{id}/head",
      "GET /v1/rollouts/{id}/outline",
      "GET /v1/rollouts/{id}/questions",
      "GET /v1/rollouts/{id}/reviews",
      "GET /v1/rollouts/{id}/turns",
      "GET /v1/rollouts/{id}/turns/{turn}",
      "GET /v1/rollouts/{id}/turns/{turn}/tokens",
      "GET /v1/runs",
      "GET /v1/runs/{id}",
      "GET /v1/runs/{id}/agreement",
      "GET /v1/runs/{id}/audit",
      "GET /v1/runs/{id}/batches/{step}",
      "GET /v1/runs/{id}/batches/{step}/credits",
      "GET /v1/runs/{id}/batches/{step}/objects/{sha256}",
      "GET /v1/runs/{id}/batches/{step}/stream",
      "GET /v1/runs/{id}/charges",
      "GET /v1/runs/{id}/compare",
      "GET /v1/runs/{id}/compare/tasks",
      "GET /v1/runs/{id}/events",
      "GET /v1/runs/{id}/export",
      "GET /v1/runs/{id}/groups",
      "GET /v1/runs/{id}/groups/{group}",
      "GET /v1/runs/{id}/histogram",
      "GET /v1/runs/{id}/metrics",
      "GET /v1/runs/{id}/report-links",
      "GET /v1/runs/{id}/results",
      "GET /v1/runs/{id}/reviews",
      "GET /v1/runs/{id}/rollouts",
      "GET /v1/runs/{id}/weight-versions",
      "GET /v1/secrets",
      "GET /v1/secrets/{id}",
      "GET /v1/sessions",
      "GET /v1/shared-report",
      "GET /v1/statements",
      "GET /v1/statements/{month}",
      "GET /v1/statements/{month}/csv",
      "GET /v1/triggers",
      "GET /v1/triggers/{id}",
      "GET /v1/triggers/{id}/deliveries",
      "GET /v1/usage",
      "GET /v1/usage/csv",
      "GET /v1/webhook-endpoints",
      "GET /v1/webhook-endpoints/{id}",
      "GET /v1/webhook-endpoints/{id}/deliveries",
      "GET /v1/whoami",
      "PATCH /v1/budgets/{id}",
      "PATCH /v1/endpoints/{id}",
      "PATCH /v1/environments/{id}",
      "PATCH /v1/fleets/{id}",
      "PATCH /v1/fleets/{id}/replicas/{replica}",
      "PATCH /v1/keys/{id}",
      "PATCH /v1/organization",
      "PATCH /v1/organizations/{id}",
      "PATCH /v1/people/{id}",
      "PATCH /v1/projects/{id}",
      "PATCH /v1/runs/{id}",
      "PATCH /v1/secrets/{id}",
      "PATCH /v1/triggers/{id}",
      "PATCH /v1/webhook-endpoints/{id}",
      "POST /hooks/{id}",
      "POST /model/{id}/v1/chat/completions",
      "POST /model/{id}/v1/messages",
      "POST /model/{id}/v1/messages/count_tokens",
      "POST /model/{id}/v1/responses",
      "POST /v1/adjustments",
      "POST /v1/agents/{name}/heartbeat",
      "POST /v1/agents/{name}/lease",
      "POST /v1/agents/{name}/release",
      "POST /v1/bootstrap",
      "POST /v1/budgets",
      "POST /v1/checkouts",
      "POST /v1/dataset-uploads",
      "POST /v1/dataset-uploads/{id}/complete",
      "POST /v1/datasets",
      "POST /v1/endpoints",
      "POST /v1/endpoints/{id}/probe",
      "POST /v1/environments",
      "POST /v1/environments/{id}/take-down",
      "POST /v1/fleets",
      "POST /v1/fleets/{id}/replicas",
      "POST /v1/fleets/{id}/replicas/{replica}/probe",
      "POST /v1/invitations",
      "POST /v1/invitations/accept",
      "POST /v1/keys",
      "POST /v1/keys/{id}/rotate",
      "POST /v1/leases/{id}/ack",
      "POST /v1/leases/{id}/heartbeat",
      "POST /v1/leases/{id}/nack",
      "POST /v1/organizations",
      "POST /v1/prices",
      "POST /v1/projects",
      "POST /v1/reseal",
      "POST /v1/rollouts",
      "POST /v1/rollouts/{id}/cancel",
      "POST /v1/rollouts/{id}/finish",
      "POST /v1/rollouts/{id}/fork",
      "POST /v1/runs",
      "POST /v1/runs/preview",
      "POST /v1/runs/{id}/cancel",
      "POST /v1/runs/{id}/pause",
      "POST /v1/runs/{id}/release-lost-calls",
      "POST /v1/runs/{id}/report-links",
      "POST /v1/runs/{id}/rescore",
      "POST /v1/runs/{id}/resume",
      "POST /v1/runs/{id}/retry",
      "POST /v1/runs/{id}/trainer/lease",
      "POST /v1/runs/{id}/trainer/register",
      "POST /v1/runs/{id}/trainer/token",
      "POST /v1/runs/{id}/weight-versions",
      "POST /v1/secrets",
      "POST /v1/session",
      "POST /v1/sign-in-codes",
      "POST /v1/stripe/webhook",
      "POST /v1/top-ups",
      "POST /v1/triggers",
      "POST /v1/triggers/{id}/test",
      "POST /v1/webhook-endpoints",
      "POST /v1/webhook-endpoints/{id}/deliveries/{msg}/replay",
      "POST /v1/webhook-endpoints/{id}/replay",
      "POST /v1/webhook-endpoints/{id}/rotate-secret",
      "POST /v1/webhook-endpoints/{id}/test",
      "PUT /npm/-/package/{id}/dist-tags/{tag}",
      "PUT /npm/-/package/{scope}/{id}/dist-tags/{tag}",
      "PUT /npm/{id}",
      "PUT /npm/{scope}/{id}",
      "PUT /v1/dataset-uploads/{id}/parts/{number}",
      "PUT /v1/environments/{id}/grant",
      "PUT /v1/environments/{id}/tags/{tag}",
      "PUT /v1/rollouts/{id}/review",
    ]
  `);
});

test("only the open routes are documented as needing no key", async () => {
  const { paths, security } = await documentServed();
  expect(security).toEqual([{ bearer: [] }]);
  const open = Object.entries(paths).filter(([, methods]) =>
    Object.values(methods).some((operation) => operation.security.length === 0),
  );
  expect(paths["/v1/shared-report"]?.["get"]?.security).toEqual([{ report_link: [] }]);
  expect(open.map(([path]) => path)).toEqual([
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    "/v1/bootstrap",
    "/v1/session",
    "/join",
    "/v1/invitations/accept",
    "/hooks/{id}",
    "/npm/-/ping",
    "/npm/-/user/token/{token}",
    "/python/{owner}/simple/{id}",
    "/v1/stripe/webhook",
  ]);
});

test("every example of a body and of a reply is what its schema describes", async () => {
  const described = new Map((await everyOperation()).map((operation) => [operation.operationId, operation]));
  const exampleIn = (content: Content = {}) => Object.values(content)[0]?.example;
  for (const { id, body, reply } of OPERATIONS) {
    const { requestBody, responses } = described.get(id) ?? {};
    if (body) expect(body.schema.safeParse(exampleIn(requestBody?.content)).error, id).toBeUndefined();
    const example = exampleIn(responses?.[reply.status ?? 200]?.content);
    if (reply.schema) expect(reply.schema.safeParse(example).error, id).toBeUndefined();
    expect(example, id).toBeDefined();
  }
});

test("an example is given with the whole body, not in its schema too, and leaves no text empty", async () => {
  const { paths, components } = await documentServed();
  expect(JSON.stringify(components)).not.toContain('"example":');
  const empty: string[] = [];
  JSON.stringify(paths, (name, value: unknown) => {
    if (value === "") empty.push(name);
    return value;
  });
  expect(empty).toEqual([]);
});

test("an example of part of an object is completed by those of its fields, and takes precedence over them", () => {
  const Part = z.object({ size: z.int().min(1), name: z.string().meta({ example: "a" }), of: z.string().nullable() });
  const Whole = z.object({
    kind: z.enum(["first", "second"]),
    parts: z.array(Part).meta({ example: [{ name: "b" }, {}] }),
    other: Part.nullable(),
    labels: z.record(z.string(), z.string()).meta({ example: { a: "b" } }),
    left: z.string().optional(),
    taken: z.string().optional().meta({ example: "c" }),
  });
  const plain = { size: 1, name: "a", of: null };
  const whole = { kind: "first", parts: [{ ...plain, name: "b" }, plain], other: null, labels: { a: "b" }, taken: "c" };
  const examples = new SchemaCollection();
  expect(examples.example(Whole)).toEqual(whole);
  const given = { kind: "second", other: { of: "d" }, labels: {} };
  expect(examples.example(Whole, given)).toEqual({ ...whole, ...given, other: { ...plain, of: "d" } });
});

test("every parameter has an example, and those of a query pass", async () => {
  for (const { operationId, parameters } of await everyOperation()) {
    for (const { name, example } of parameters) {
      expect(example, `${operationId} ${name}`).toBeDefined();
    }
    const { query } = OPERATIONS.find(({ id }) => id === operationId) ?? {};
    const asked = parameters.filter((parameter) => parameter.in === "query");
    const examples = Object.fromEntries(asked.map(({ name, example }) => [name, example]));
    expect(query?.safeParse(examples).error, operationId).toBeUndefined();
  }
});

test("every refusal is documented with an example of each code with its status", async () => {
  const saysUnavailable = OPERATIONS.filter(({ reply }) => reply.unavailable !== undefined).map(({ id }) => id);
  for (const { operationId, responses, security } of await everyOperation()) {
    const statuses = Object.keys(responses).map(Number);
    expect(statuses, operationId).toContain(500);
    expect(statuses.includes(503) && !isRefusal(responses["503"]?.content), operationId).toBe(
      saysUnavailable.includes(operationId),
    );
    if (security.length > 0) expect(statuses, operationId).toContain(401);
    for (const [status, { content = {} }] of Object.entries(responses)) {
      const { examples = {} } = content["application/json"] ?? {};
      if (Number(status) >= 400 && (status !== "503" || !saysUnavailable.includes(operationId)))
        expect(examples, operationId).not.toEqual({});
      for (const [code, { value }] of Object.entries(examples)) {
        expect([STATUS_OF[z.enum(ERROR_CODES).parse(code)][0], 408, 415, 416]).toContain(Number(status));
        expectRefusal(operationId, code, value);
      }
    }
  }
});

function expectRefusal(operationId: string, code: string, value: object): void {
  const { refusals } = OPERATIONS.find(({ id }) => id === operationId) ?? {};
  if (refusals === undefined) expect(ApiError.parse(value).error.code).toBe(code);
  else expect(refusals.schema.safeParse(value).error, operationId).toBeUndefined();
}

test("every operation has a noun that is described", async () => {
  const { tags, paths } = await documentServed();
  const used = Object.values(paths).flatMap((methods) => Object.values(methods).flatMap((operation) => operation.tags));
  expect([...new Set(used)].sort()).toEqual(tags.map(({ name }) => name).sort());
});

test("every reference leads to a schema on the page, and every schema is referenced", () => {
  const text = JSON.stringify(openApiOf(OPERATIONS));
  const { components } = JSON.parse(text) as OpenApiDocument;
  const names = Array.from(text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g), ([, name]) => name);
  expect([...new Set(names)].sort()).toEqual(Object.keys(components.schemas).sort());
  const bearer = { type: "http", scheme: "bearer" };
  expect(components.securitySchemes).toMatchObject({ bearer, report_link: bearer });
});

test("operation ids are unique", () => {
  const ids = OPERATIONS.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test("no schema has what generators of clients refuse: a boolean, an object as default, one name twice", () => {
  const { components } = openApiOf(OPERATIONS);
  const names = Object.keys(components.schemas).map((name) => name.toLowerCase());
  expect(new Set(names).size).toBe(names.length);
  const found: unknown[] = [];
  JSON.stringify(components.schemas, (key, value: unknown) => {
    const literal = key === "default" && typeof value === "object" && value !== null;
    if (literal || (key === "items" && typeof value === "boolean")) found.push({ [key]: value });
    return key === "example" ? undefined : value;
  });
  expect(found).toEqual([]);
  const { ci95 } = RunReport.shape.reward.shape;
  expect(new SchemaCollection().of(ci95)).toMatchObject({
    anyOf: [{ type: "array", minItems: 2, maxItems: 2 }, { type: "null" }],
  });
});
