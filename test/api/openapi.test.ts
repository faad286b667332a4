import { expect, test } from "vitest";
import { OPERATIONS } from "../../src/api/app.ts";
import { openApiOf } from "../../src/api/openapi.ts";
import { openDoor } from "./door.ts";

interface Document {
  openapi: string;
  security: unknown;
  paths: Record<string, Record<string, { security?: unknown; operationId: string }>>;
  components: { schemas: Record<string, unknown>; securitySchemes: unknown };
}

async function documentServed(): Promise<Document> {
  const { ask } = await openDoor();
  return (await ask("/openapi.json")).json<Document>();
}

const documented = (paths: Document["paths"]) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );

test("every route is documented and every documented route exists", async () => {
  const { paths } = await documentServed();
  const { app } = await openDoor();
  const routed = app.routes
    .filter(({ method }) => method !== "ALL")
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  expect(new Set(documented(paths))).toEqual(new Set(routed));
  expect(documented(paths).sort()).toMatchInlineSnapshot(`
  [
    "GET /healthz",
    "GET /openapi.json",
    "GET /v1/environments",
    "GET /v1/environments/{id}",
    "GET /v1/rollouts/{id}",
    "GET /v1/runs",
    "GET /v1/runs/{id}",
    "GET /v1/runs/{id}/events",
    "GET /v1/runs/{id}/results",
    "POST /v1/runs",
    "POST /v1/runs/{id}/cancel",
  ]
`);
});

test("only the open routes are documented as needing no key", async () => {
  const { paths, security } = await documentServed();
  expect(security).toEqual([{ bearer: [] }]);
  const open = Object.entries(paths).filter(([, methods]) =>
    Object.values(methods).some((operation) => operation.security !== undefined),
  );
  expect(open.map(([path]) => path)).toEqual(["/healthz", "/openapi.json"]);
});

test("every example is what its schema describes", () => {
  for (const { id, body, reply } of OPERATIONS) {
    if (body) expect(body.schema.safeParse(body.example).error, id).toBeUndefined();
    if (reply.schema) expect(reply.schema.safeParse(reply.example).error, id).toBeUndefined();
    expect(reply.example, id).toBeDefined();
  }
});

test("every reference leads to a schema on the page", () => {
  const text = JSON.stringify(openApiOf(OPERATIONS));
  const { components } = JSON.parse(text) as Document;
  const names = Array.from(
    text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g),
    ([, n]) => n,
  );
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => !(String(name) in components.schemas))).toEqual([]);
  expect(components.securitySchemes).toMatchObject({ bearer: { type: "http", scheme: "bearer" } });
});

test("operation ids are unique", () => {
  const ids = OPERATIONS.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});
