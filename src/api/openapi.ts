/**
 * The OpenAPI 3.1 page, made from the operations and the schemas the code itself parses with. Written here rather than
 * by a library: zod 4 makes the JSON Schemas, and the libraries at hand keep all of zod's 64 languages in the bundle.
 */
import * as z from "zod";
import { ApiError, type ErrorCode } from "../core/api-error.ts";
import {
  EnvironmentView,
  ResultRow,
  RolloutView,
  RunCounts,
  RunReport,
  RunView,
} from "../core/run.ts";
import { EnvironmentList } from "./environments.ts";
import { STATUS_OF } from "./errors.ts";
import type { Operation } from "./operation.ts";
import { CreateRun, RunList } from "./runs.ts";

/** Schemas with a name of their own; a named schema inside another must be listed too. */
const NAMED = [
  CreateRun,
  RunView,
  RunCounts,
  RunReport,
  RunList,
  RolloutView,
  ResultRow,
  EnvironmentView,
  EnvironmentList,
  ApiError,
];
const BEARER = { type: "http", scheme: "bearer", description: "an API key" };
/** What any request may meet. */
const ALWAYS: readonly ErrorCode[] = ["internal"];
const WITH_KEY: readonly ErrorCode[] = ["unauthorized", ...ALWAYS];

export function openApiOf(operations: readonly Operation[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Rollcall",
      version: "1",
      description:
        "Rollouts and scoring for agent evals. Times are integer seconds since the epoch. Every reply has an x-request-id; send one to have it echoed.",
    },
    security: [{ bearer: [] }],
    paths,
    components: { schemas: namedSchemas(), securitySchemes: { bearer: BEARER } },
  };
}

function describe(operation: Operation): object {
  return {
    operationId: operation.id,
    summary: operation.summary,
    ...(operation.open && { security: [] }),
    parameters: [
      ...Array.from(operation.path.matchAll(/\{(\w+)\}/g), ([, name]) => ({
        name,
        in: "path",
        required: true,
        schema: { type: "string" },
      })),
      ...Object.entries(operation.query?.shape ?? {}).map(queryParameter),
      ...Object.entries(operation.headers ?? {}).map(([name, description]) => ({
        name,
        in: "header",
        description,
        schema: { type: "string" },
      })),
    ],
    ...(operation.body && {
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: schemaOf(operation.body.schema),
            example: operation.body.example,
          },
        },
      },
    }),
    responses: { [operation.reply.status]: success(operation), ...failures(operation) },
  };
}

function queryParameter([name, schema]: [string, z.core.$ZodType]): object {
  const { description, ...rest } = inline(schema);
  const told = description === undefined ? {} : { description };
  // An object in the query is written name[key]=value.
  const style = rest["type"] === "object" ? { style: "deepObject", explode: true } : {};
  return { name, in: "query", ...told, ...style, schema: rest };
}

function success({ reply }: Operation): object {
  const headers = Object.entries(reply.headers ?? {}).map(([name, description]) => [
    name,
    { description, schema: { type: "string" } },
  ]);
  const schema = reply.schema === null ? { type: "string" } : schemaOf(reply.schema);
  return {
    description: reply.description,
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
    content: { [reply.contentType]: { schema, example: reply.example } },
  };
}

/** One response per status, naming the codes that share it. */
function failures(operation: Operation): Record<string, object> {
  const codes = [...operation.errors, ...(operation.open ? ALWAYS : WITH_KEY)];
  const byStatus = Object.groupBy(codes, (code) => String(STATUS_OF[code][0]));
  const responses = Object.entries(byStatus).map(([status, sharing = []]) => [
    status,
    {
      description: sharing.join(", "),
      content: { "application/json": { schema: schemaOf(ApiError) } },
    },
  ]);
  return Object.fromEntries(responses);
}

/** A reference to a named schema, or the schema itself. */
function schemaOf(schema: z.ZodType): object {
  const id = schema.meta()?.id;
  return id === undefined ? inline(schema) : { $ref: reference(id) };
}

function inline(schema: z.core.$ZodType): Record<string, unknown> {
  // `input` everywhere: fields with a default may be left out, and replies may gain fields later.
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}

function namedSchemas(): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  for (const schema of NAMED) registry.add(schema, { id: schema.meta()?.id ?? "" });
  const { schemas } = z.toJSONSchema(registry, { io: "input", uri: reference });
  for (const schema of Object.values(schemas)) {
    delete schema.$schema;
    delete schema.$id;
  }
  return schemas;
}

function reference(id: string): string {
  return `#/components/schemas/${id}`;
}
