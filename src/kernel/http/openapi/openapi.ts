/**
 * Makes the OpenAPI 3.1 document from the operations and from the schemas that the code parses with. It is written by
 * hand: zod 4 makes the JSON Schemas, and the available libraries put all 64 languages of zod into the bundle.
 *
 * Invariants. Every parameter, body and reply has an example, and so has every code that an operation may return, under
 * its status. The schema of a body of lines or events is that of one line or one event.
 */
import * as z from "zod";
import { ApiError, type ErrorCode, STATUS_OF } from "../../../contract/api-error.ts";
import { Month } from "../../../contract/money.ts";
import { EXAMPLE } from "../../../contract/primitives.ts";
import { BatchStep } from "../batches.ts";
import { PartNumber } from "../dataset-uploads.ts";
import { EventId } from "../events.ts";
import { IdempotencyKey } from "../input.ts";
import { isOpen, type Operation, placeOf } from "../operation.ts";
import { errorExample, slowBodyExample, whenAnswered, wrongTypeExample } from "./error-examples.ts";
import { GUIDE, NOUNS } from "./guide.ts";
import { type JsonSchema, SchemaCollection } from "./json-schema.ts";

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly security: readonly object[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: object;
    readonly headers: object;
  };
}

export interface DocumentedOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: true; readonly content: Content };
  readonly responses: Readonly<Record<string, DocumentedReply>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

export interface DocumentedReply {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly description?: string; $ref?: string }>>;
  readonly content?: Content;
}

export type Content = Readonly<Record<string, MediaType>>;
export interface MediaType {
  readonly schema: JsonSchema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: object }>>;
}

const text = (description: string, example: string) => z.string().describe(description).meta({ example });

/** Parameters of paths: `{id}`, by the noun of the path. */
const PATH_IDS: Readonly<Record<string, z.ZodType>> = {
  runs: text("id of the run", EXAMPLE.run),
  rollouts: text("id of the rollout", EXAMPLE.rollout),
  model: text("id of the rollout", EXAMPLE.rollout),
  environments: text("id, or id@version", "gsm8k@1"),
  datasets: text("id or name", "gsm8k-test"),
  "dataset-uploads": text("id of the upload", EXAMPLE.upload),
  endpoints: text("id or name", "qwen"),
  fleets: text("id or name", "trained"),
  secrets: text("id or name", "SEARCH_KEY"),
  "webhook-endpoints": text("id of the endpoint", EXAMPLE.webhook),
  triggers: text("id or name", "on-merge"),
  hooks: text("id of the trigger", EXAMPLE.trigger),
  leases: text("id of the lease", EXAMPLE.lease),
  organizations: text("id of the organisation", EXAMPLE.organization),
  projects: text("id or name", "math"),
  keys: text("id of the key", EXAMPLE.key),
  people: text("id of the person", EXAMPLE.person),
  sessions: text("id of the session", EXAMPLE.session),
  "report-links": text("id of the link", EXAMPLE.reportLink),
  invitations: text("id of the invitation", EXAMPLE.invitation),
  deletions: text("id of the deletion", EXAMPLE.deletion),
  budgets: text("id of the budget", EXAMPLE.budget),
  npm: text("name of the package", "@alice/guess-word"),
  python: text("name of the environment, without its owner", "guess-word"),
};
/** The other parameters of paths. */
const PATH_PARTS: Readonly<Record<string, z.ZodType>> = {
  name: text("name of the agent", "my-agent"),
  step: BatchStep.describe("step the batch is for, from 1").meta({ example: "1" }),
  month: Month.describe("of UTC"),
  replica: text("id or name", "gpu-0"),
  group: text("number of the group, from 0", "41"),
  msg: text("id of the delivery: its webhook-id", EXAMPLE.delivery),
  number: PartNumber.describe("number of the part, from 1").meta({ example: "1" }),
  turn: text("number of the turn, from 0", "0"),
  tag: text("name of the tag", "beta"),
  token: text("the key", "rk_…"),
  scope: text("owner, after an `@`", "@alice"),
  owner: text("name of the owner", "alice"),
  file: text("name of the file", "guess-word-1.0.1.tgz"),
  sha256: text("digest of the object, in hex", EXAMPLE.batch_sha256),
};
/** Each operation describes what its headers mean. */
const HEADERS: Readonly<Record<string, z.ZodType>> = {
  "Idempotency-Key": IdempotencyKey.meta({ example: "nightly-2026-11-21" }),
  "Rollcall-Project": z.string().meta({ example: "default" }),
  "Stripe-Signature": z.string().meta({ example: "t=1792000000,v1=5257a869e7ecebeda32affa62cdca3fa" }),
  "webhook-id": z.string().meta({ example: "nightly_2026-11-30" }),
  "webhook-timestamp": z.string().meta({ example: "1796016000" }),
  "webhook-signature": z.string().meta({ example: "v1,cGBcLWlg8dvesATzcVXOZZryj3pS/bhQHVtHtzB7oa8=" }),
  "X-Hub-Signature-256": z.string().meta({ example: `sha256=${EXAMPLE.batch_sha256}` }),
  "X-GitHub-Delivery": z.string().meta({ example: "72d3162e-cc78-11e3-81ab-4c9367dc0958" }),
  "X-GitHub-Event": z.string().meta({ example: "push" }),
  "X-Webhook-Secret": z.string().meta({ example: "a-secret-that-the-hub-sends" }),
  "Last-Event-ID": EventId.meta({ example: "41" }),
  "x-stainless-retry-count": z.string().meta({ example: "1" }),
  "X-Rollcall-Train": z.enum(["true", "false"]).meta({ example: "false" }),
  Range: z.string().meta({ example: "bytes=1048576-" }),
  "If-None-Match": z.string().meta({ example: `"${EXAMPLE.batch_sha256}"` }),
};

/** For operations about a project. */
const PROJECT = {
  "Rollcall-Project": "the project, by id or name; only for keys of a whole organisation",
};

const bearer = (description: string) => ({ type: "http", scheme: "bearer", description });
const SCHEMES: Readonly<Record<"bearer" | "basic" | NonNullable<Operation["proof"]>, object>> = {
  bearer: bearer("an API key"),
  basic: { type: "http", scheme: "basic", description: "any user name, with an API key as the password" },
  rollout_key: bearer(
    "the key of a rollout that an agent has leased; the addresses of models also take it as `x-api-key`",
  ),
  report_link: bearer("the token of a report link, after the `#` of its `url`"),
};

const REQUEST_ID = { "x-request-id": { $ref: "#/components/headers/x-request-id" } };

export function openApiOf(operations: readonly Operation[]): OpenApiDocument {
  const schemas = new SchemaCollection();
  const paths: Record<string, Record<string, DocumentedOperation>> = {};
  for (const operation of operations) {
    const { path, method } = placeOf(operation);
    paths[path] = { ...paths[path], [method.toLowerCase()]: new Description(operation, schemas).whole() };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Rollcall",
      version: "1",
      description: GUIDE.map(({ title, text }) => `## ${title}\n\n${text}`).join("\n\n"),
    },
    security: [{ bearer: [] }],
    tags: Object.entries(NOUNS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: schemas.named,
      securitySchemes: SCHEMES,
      headers: {
        "x-request-id": {
          description: "id of this request; your own if you sent one",
          schema: { type: "string" },
        },
      },
    },
  };
}

/** Whether a reply is an `Error`. 503 is also the status of a reply that says what is not available. */
export function isRefusal(content: Content = {}): boolean {
  return Object.values(content).some(({ examples }) => examples !== undefined);
}

/** `runs` for `/v1/runs/{id}`. Other paths outside /v1 belong to the platform, unless it has them for other clients. */
function nounOf(path: string): string {
  return /^\/(?:v1\/|(?=(?:hooks|model|npm|python)\/))([\w-]+)/.exec(path)?.[1] ?? "platform";
}

/** The scopes of which a key needs one. */
function securityOf({ permission, proof, keyless, basic }: Operation): readonly object[] {
  if (proof !== undefined) return [{ [proof]: [] }];
  if (permission === "anybody") return [];
  if (permission === "caller") return [{ bearer: [] }];
  const schemes = ["bearer", ...(basic ? ["basic"] : [])];
  const scopes = [permission].flat();
  return [
    ...schemes.flatMap((scheme) => scopes.map((scope) => ({ [scheme]: [scope] }))),
    // No key at all.
    ...(keyless ? [{}] : []),
  ];
}

class Description {
  readonly #operation: Operation;
  readonly #path: string;
  readonly #schemas: SchemaCollection;
  readonly #noun: string;

  constructor(operation: Operation, schemas: SchemaCollection) {
    this.#operation = operation;
    this.#schemas = schemas;
    this.#path = placeOf(operation).path;
    this.#noun = nounOf(this.#path);
  }

  whole(): DocumentedOperation {
    const { id, summary, description, body, reply } = this.#operation;
    return {
      operationId: id,
      summary,
      ...(description !== undefined && { description }),
      tags: [this.#noun],
      security: securityOf(this.#operation),
      parameters: [...this.#inPath(), ...this.#inQuery(), ...this.#inHeaders()],
      ...(body && {
        requestBody: {
          required: true,
          content: {
            [body.contentType ?? "application/json"]: {
              schema: this.#schemas.of(body.schema),
              example: this.#schemas.example(body.schema, body.example),
            },
          },
        },
      }),
      responses: {
        [reply.status ?? 200]: this.#success(),
        ...(reply.empty !== undefined && {
          "204": { description: reply.empty, headers: REQUEST_ID },
        }),
        ...(reply.moved !== undefined && {
          "301": { description: reply.moved, headers: REQUEST_ID },
        }),
        ...(reply.ranged && this.#ranged()),
        ...(reply.unavailable !== undefined && {
          "503": { ...this.#success(), description: reply.unavailable },
        }),
        ...this.#failures(),
      },
    };
  }

  #inPath(): Parameter[] {
    const names = Array.from(this.#path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => name);
    return names.map((name) => {
      const schema = name === "id" ? PATH_IDS[this.#noun] : PATH_PARTS[name];
      return { ...this.#parameter("path", name, schema), required: true };
    });
  }

  #inQuery(): Parameter[] {
    const fields = Object.entries(this.#operation.query?.shape ?? {});
    return fields.map(([name, schema]) => this.#parameter("query", name, schema));
  }

  #inHeaders(): Parameter[] {
    const { headers = {}, reach } = this.#operation;
    const project = isOpen(this.#operation) || reach === "organization" ? undefined : PROJECT;
    const meanings = Object.entries({ ...project, ...headers });
    return meanings.map(([name, description]) => ({ ...this.#parameter("header", name, HEADERS[name]), description }));
  }

  #parameter(place: Parameter["in"], name: string, schema: z.core.$ZodType = z.string()): Parameter {
    const { description, example, ...rest } = this.#schemas.ofParameter(schema);
    return {
      name,
      in: place,
      ...(description !== undefined && { description }),
      // An object in the query is written as name[key]=value.
      ...(rest.type === "object" && { style: "deepObject", explode: true }),
      schema: rest,
      example: example ?? rest.default ?? rest.enum?.[0] ?? rest.const ?? this.#cursor(name),
    };
  }

  /** The example of a list ends with the id after which its next page begins. */
  #cursor(name: string): unknown {
    const page = z.object({ last_id: z.string() }).safeParse(this.#replyExample());
    return name === "after" ? page.data?.last_id : undefined;
  }

  #success(): DocumentedReply {
    const {
      description,
      schema,
      contentType = "application/json",
      headers = {},
      otherwise = {},
    } = this.#operation.reply;
    const others = Object.entries(otherwise).map(([type, { description, example }]) => [
      type,
      {
        schema: type === "application/jsonl" ? { type: "object", description } : { type: "string", description },
        example,
      },
    ]);
    const described = Object.entries(headers).map(([name, meaning]) => [
      name,
      { description: meaning, schema: { type: "string" } },
    ]);
    return {
      description,
      headers: { ...REQUEST_ID, ...Object.fromEntries(described) },
      content: {
        [contentType]: {
          schema: schema === null ? { type: "string" } : this.#schemas.of(schema),
          example: this.#replyExample(),
        },
        ...Object.fromEntries(others),
      },
    };
  }

  #replyExample(): unknown {
    const { schema, example } = this.#operation.reply;
    return schema === null ? example : this.#schemas.example(schema, example);
  }

  #ranged(): Record<string, DocumentedReply> {
    const range = this.#failure(["invalid_request"], () => errorExample("invalid_request", null));
    return {
      "206": { ...this.#success(), description: "the requested `Range`" },
      "304": { description: "not modified: `If-None-Match` has its digest", headers: REQUEST_ID },
      "416": { ...range, description: "`Range` is not satisfiable" },
    };
  }

  /** One response for each status, with an example of each code that has this status. */
  #failures(): Record<string, DocumentedReply> {
    const { body } = this.#operation;
    const [id] = this.#inPath();
    const missing = id === undefined ? null : `${this.#noun.replace(/s$/, "")} ${id.example}`;
    const byStatus = Object.groupBy(codesOf(this.#operation, this.#path), (code) => STATUS_OF[code][0]);
    const replies = Object.entries(byStatus).map(([status, codes = []]) => [
      status,
      this.#failure(codes, (code) => errorExample(code, missing)),
    ]);
    const wrongType = () => wrongTypeExample(body?.contentType ?? "application/json");
    const ofBody = body && {
      "408": this.#failure(["invalid_request"], slowBodyExample),
      "415": this.#failure(["invalid_request"], wrongType),
    };
    return { ...Object.fromEntries(replies), ...ofBody };
  }

  #failure(codes: readonly ErrorCode[], exampleOf: (code: ErrorCode) => ApiError): DocumentedReply {
    const { schema, bodyOf } = this.#operation.refusals ?? { schema: ApiError, bodyOf: (error) => ({ error }) };
    return {
      description: codes.map((code) => `\`${code}\`: ${whenAnswered(code)}`).join("; "),
      headers: REQUEST_ID,
      content: {
        "application/json": {
          schema: this.#schemas.of(schema),
          examples: Object.fromEntries(codes.map((code) => [code, { value: bodyOf(exampleOf(code).error) }])),
        },
      },
    };
  }
}

/** Operations that call the object of a run. */
const ofRun = /^\/v1\/(runs|rollouts)\/\{id\}/;

/** The codes that the operation declares, and those that any request of its kind may get. */
function codesOf(operation: Operation, path: string): ErrorCode[] {
  const { body, query, headers, errors = [] } = operation;
  const open = isOpen(operation);
  // The format of a step or of a part's number is checked; an id is only looked up.
  const reads = (body ?? query ?? headers) !== undefined || /\{(step|month|number)\}/.test(path);
  // Its project may be named in a header.
  const inProject = !open && operation.reach !== "organization";
  const may = (does: boolean | undefined, code: ErrorCode): ErrorCode[] => (does ? [code] : []);
  return [
    ...new Set([
      ...may(reads || inProject, "invalid_request"),
      ...may(!open, "unknown_field"),
      ...may(path.includes("{id}") || inProject, "not_found"),
      ...errors,
      ...may(body !== undefined, "too_large"),
      ...may(!open, "unauthorized"),
      ...may(!open && operation.permission !== "caller", "forbidden"),
      ...may(!open || body !== undefined, "rate_limited"),
      ...may(ofRun.test(path), "run_unreadable"),
      ...may(!open, "storage_full"),
      ...may(!open, "unavailable"),
      "internal" as const,
    ]),
  ];
}
