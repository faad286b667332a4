/**
 * The HTTP interface: every operation on one router.
 *
 * Invariants. Every reply has an x-request-id, and the headers of `protections`. Only operations marked open are served
 * without a key. A path that exists with another method is 405 with `allow`; any other unknown path is 404. No
 * exception reaches a caller.
 */
import { Hono, type MiddlewareHandler } from "hono";
import * as z from "zod";
import { PAGES } from "../../contract/pages.ts";
import { AnyObject } from "../../contract/primitives.ts";
import { damagedMessage, failedForStorage, isPassing, isUnreadable, STORAGE_FULL } from "../kit/storage-faults.ts";
import { batchOperations } from "./batches.ts";
import { datasetUploadOperations } from "./dataset-uploads.ts";
import { datasetOperations } from "./datasets.ts";
import { endpointOperations } from "./endpoints.ts";
import { environmentOperations } from "./environments.ts";
import { internalRefusal, Refusal, refusalReply } from "./errors.ts";
import { eventOperations } from "./events.ts";
import { Guard } from "./guard.ts";
import { healthOperations, readinessCache } from "./health.ts";
import { parseAs, queryOf } from "./input.ts";
import { type OpenApiDocument, openApiOf } from "./openapi/openapi.ts";
import { docsReply } from "./openapi/reference-page.ts";
import {
  type ApiContext,
  type ApiDependencies,
  type ApiTypes,
  isOpen,
  type Operation,
  placeOf,
  type RefusalForm,
} from "./operation.ts";
import { keepPace, STRANGERS } from "./pace.ts";
import { ASSET_PATHS, assetReply, isNavigation, pageReply } from "./pages.ts";
import { resealOperations } from "./reseal.ts";
import { resultOperations } from "./results.ts";
import { rolloutListOperations } from "./rollout-lists.ts";
import { rolloutOperations } from "./rollouts.ts";
import { runOperations } from "./runs.ts";
import { secretOperations } from "./secrets.ts";
import { trainerOperations, weightOperations } from "./trainer.ts";
import { turnOperations } from "./turns.ts";

/** CPU of sending a cached page of a megabyte, in milliseconds. */
const PAGE_COST_MS = 20;

const apiOperations: readonly Operation[] = [
  ...healthOperations,
  {
    id: "getOpenApi",
    route: "GET /openapi.json",
    permission: "anybody",
    summary: "Read this reference as an OpenAPI document",
    reply: { description: "OpenAPI 3.1", schema: AnyObject, example: { openapi: "3.1.0" } },
    costMs: PAGE_COST_MS,
    handle: (context) => context.body(openApiText(context), 200, { "content-type": "application/json" }),
  },
  {
    id: "getDocs",
    route: "GET /docs",
    permission: "anybody",
    summary: "Read this reference as an HTML page",
    reply: {
      description: "Self-contained HTML",
      contentType: "text/html",
      schema: null,
      example: "<!doctype html>…",
    },
    costMs: PAGE_COST_MS,
    handle: (context) => docsReply(context, openApi(context)),
  },
];

/** The operations that belong to no slice. */
export const KERNEL_OPERATIONS: readonly Operation[] = [
  ...apiOperations,
  ...runOperations,
  ...eventOperations,
  ...resultOperations,
  ...rolloutListOperations,
  ...trainerOperations,
  ...batchOperations,
  ...weightOperations,
  ...rolloutOperations,
  ...turnOperations,
  ...environmentOperations,
  ...endpointOperations,
  ...secretOperations,
  ...datasetOperations,
  ...datasetUploadOperations,
  ...resealOperations,
];

const documents = new WeakMap<readonly Operation[], OpenApiDocument>();

/** Made once for each isolate, on the first request, because these routes need no key. */
function openApi({ var: { operations } }: ApiContext): OpenApiDocument {
  const document = documents.get(operations) ?? openApiOf(operations);
  documents.set(operations, document);
  return document;
}

const texts = new WeakMap<OpenApiDocument, string>();

function openApiText(context: ApiContext): string {
  const document = openApi(context);
  const text = texts.get(document) ?? JSON.stringify(document);
  texts.set(document, text);
  return text;
}

/** An open operation with a large reply is paced together with all requests without a key. */
function paced({ costMs }: Operation): MiddlewareHandler<ApiTypes> {
  return async (_, next) => {
    if (costMs !== undefined) await keepPace(STRANGERS, costMs);
    await next();
  };
}

/** `operations`: all that it serves, and that its reference describes. */
export function createApp(dependencies: ApiDependencies, operations: readonly Operation[]): Hono<ApiTypes> {
  const app = new Hono<ApiTypes>();
  const guard = new Guard(dependencies.now, dependencies.authentication(dependencies.now));
  app.use(prepare(dependencies, operations));
  for (const operation of operations) {
    const { handle } = operation;
    const { method, path } = placeOf(operation);
    const route = path.replaceAll(/\{(\w+)\}/g, ":$1");
    if (isOpen(operation)) app.on(method, route, naming(operation), paced(operation), handle);
    else app.on(method, route, naming(operation), guard.of(operation), withoutQuery(operation), handle);
  }
  for (const path of PAGES) app.get(path, (context) => pageReply(context));
  app.get(ASSET_PATHS, assetReply);
  app.notFound((context) => {
    const form = formBeside(operations, context.req.path);
    const refusal = unserved(context.req.path, form) ?? unknownRoute(operations, context.req.path);
    return refusal.status === 404 && isNavigation(context) ? pageReply(context, 404) : refusalReply(refusal, form);
  });
  app.onError(async (error, context) => {
    const refusal = error instanceof Refusal ? error : await refusalOfFault(error, context);
    if (refusal !== error) dependencies.report(error, context.var.requestId);
    return refusalReply(refusal, context.var.operation?.refusals);
  });
  return app;
}

async function refusalOfFault(fault: Error, { env, req }: ApiContext): Promise<Refusal> {
  if (await failedForStorage(env, fault)) return FULL;
  if (isPassing(env, fault)) return UNAVAILABLE;
  return (isUnreadable(env, fault) ? unreadableRun(req.path) : null) ?? internalRefusal();
}

function naming(operation: Operation): MiddlewareHandler<ApiTypes> {
  return async (context, next) => {
    context.set("operation", operation);
    await next();
  };
}

/** An operation without a query schema accepts no parameters, so that a misspelt one is refused. */
function withoutQuery({ query }: Operation): MiddlewareHandler<ApiTypes> {
  return async (context, next) => {
    if (query === undefined) parseAs(z.strictObject({}), queryOf(context.req.url));
    await next();
  };
}

/** Gives the request and its reply an id. A caller's own id is kept if it is valid. */
function prepare(dependencies: ApiDependencies, operations: readonly Operation[]): MiddlewareHandler<ApiTypes> {
  const readiness = readinessCache();
  return async (context, next) => {
    const given = context.req.header("x-request-id") ?? "";
    const requestId = /^[\w.:-]{1,128}$/.test(given) ? given : crypto.randomUUID();
    context.set("requestId", requestId);
    context.set("operations", operations);
    context.set("services", dependencies.services);
    context.set("slices", dependencies.slices);
    context.set("now", dependencies.now);
    context.set("outlive", dependencies.outlive);
    context.set("report", dependencies.report);
    context.set("readiness", readiness);
    await next();
    const headers = { ...protections(context), "x-request-id": requestId, ...context.var.limitHeaders };
    for (const [name, value] of Object.entries(headers)) context.header(name, value);
  };
}

/**
 * Headers that stop a browser from treating a reply as anything else than it is. No reply has CORS headers, so no page
 * of another origin can read one. A handler may set its own value for one of these headers.
 */
function protections({ req, res }: ApiContext): Readonly<Record<string, string>> {
  const secure = new URL(req.url).protocol === "https:";
  const all = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    ...(req.path.startsWith("/v1/") && { "cache-control": "no-store" }),
    ...(secure && { "strict-transport-security": "max-age=31536000" }),
  };
  return Object.fromEntries(Object.entries(all).filter(([name]) => !res.headers.has(name)));
}

const UNAVAILABLE = new Refusal({
  code: "unavailable",
  message: "a part of the platform did not answer: nothing is known to be lost, try again",
  param: null,
});
const FULL = new Refusal({ code: "storage_full", message: STORAGE_FULL, param: null });

/** An error about the storage of a run, for routes that read the run's object; null for any other route. */
function unreadableRun(path: string): Refusal | null {
  const id = path.match(/^\/v1\/(?:runs|rollouts)\/([^/]+)/)?.[1];
  if (id === undefined) return null;
  return new Refusal({ code: "run_unreadable", message: damagedMessage(id), param: "id" });
}

/** The form of the operations whose paths begin with the same part, such as `/npm/`. */
function formBeside(operations: readonly Operation[], path: string): RefusalForm | undefined {
  const [, part = ""] = path.split("/");
  return operations.find((one) => one.refusals !== undefined && placeOf(one).path.startsWith(`/${part}/`))?.refusals;
}

function unserved(path: string, form: RefusalForm | undefined): Refusal | null {
  const found = form?.unserved(path) ?? null;
  if (found === null) return null;
  // No method is allowed there.
  const headers = found.status === 405 ? { allow: "" } : {};
  return new Refusal({ code: "not_found", message: found.message, param: null }, { status: found.status, headers });
}

function unknownRoute(operations: readonly Operation[], path: string): Refusal {
  const allowed = operations.map(placeOf).flatMap((place) => (patternOf(place.path).test(path) ? [place.method] : []));
  if (allowed.length === 0) {
    return new Refusal({ code: "not_found", message: `no such path: ${path}`, param: null });
  }
  const allow = allowed.join(", ");
  return new Refusal(
    { code: "invalid_request", message: `${path} allows ${allow}`, param: null },
    { status: 405, headers: { allow } },
  );
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+").replaceAll(".", "\\.")}$`);
}
