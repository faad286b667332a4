/**
 * Adapts the OpenAPI document for Schemathesis: with existing ids and names, and in the vocabulary that it supports.
 */
import * as z from "zod";

export type Names = Readonly<Record<string, readonly string[]>>;

export interface Known {
  /** By the noun of a path: what requests may read and change. */
  readonly ids: Names;
  /** By noun: what they may end or delete, besides what they create themselves. */
  readonly spare: Names;
  /** By the member of a body, or the parameter, that names one. */
  readonly members: Names;
  /** A run whose stream of events ends; also used for the routes of a training run. */
  readonly ended: string;
  readonly training: string;
}

const Json = z.record(z.string(), z.unknown());
type Json = z.infer<typeof Json>;
const Content = z.record(z.string(), z.looseObject({ schema: Json }));
const Operation = z.looseObject({
  parameters: z.array(z.looseObject({ name: z.string(), schema: Json })),
  responses: z.record(z.string(), z.looseObject({ content: Content.optional() })),
});
const Document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.looseObject({
    schemas: z.record(z.string(), z.looseObject({ properties: z.record(z.string(), Json).optional() })),
  }),
});

/** Ends, deletes or changes something that later requests need, or the key that they use. */
const ENDS = /^delete|\/(cancel|rotate|token)$|^patch \/v1\/(keys|people|organizations|projects|endpoints)\//;
/** Routes of a training run; the stream of a run in progress would not end. */
const OF_TRAINING = /\/(trainer|batches|metrics|weight-versions)\b/;
const STREAM = "/v1/runs/{id}/events";
/**
 * The only route that gets idempotency keys: the tool repeats a key with other bodies, and more routes would teach it
 * nothing.
 */
const REPEATED = "/v1/projects";
/** The most seconds that a request waits for a batch. */
const MOST_WAIT_S = 1;
/** Character classes that Python's regular expressions do not support become printable ASCII; */
const PRINTABLE = "^[ -~]*$";
/** and URLs that the platform calls become one where nothing answers. */
const ADDRESS = String.raw`^https?://127\.0\.0\.1:1/[a-z0-9]{0,9}$`;

/** `text`: the answer of `GET /openapi.json`. */
export function documentFor(text: string, known: Known): string {
  const { members } = known;
  const document = Document.parse(JSON.parse(text, (key, value) => plainly(key, exampleOf(value, members[key]))));
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      nameParameters(operation, method, path, known);
      readLines(operation);
    }
  }
  for (const [id, { properties = {} }] of Object.entries(document.components.schemas)) {
    for (const [name, member] of Object.entries(properties))
      properties[name] = memberOf(id, name, member, members[name]);
  }
  return JSON.stringify(document);
}

function nameParameters(operation: z.infer<typeof Operation>, method: string, path: string, known: Known): void {
  const [, noun = "", isList] = /^\/v1\/([\w-]+)(?:$|(\/))/.exec(path) ?? [];
  const names: Names = {
    ...known.members,
    id: idsFor(noun, method, path, known),
    ...(isList === undefined && { after: known.ids[noun] ?? [] }),
  };
  operation.parameters = operation.parameters.filter(({ name }) => name !== "Idempotency-Key" || path === REPEATED);
  for (const parameter of operation.parameters) {
    const [first, ...others] = names[parameter.name] ?? [];
    if (first !== undefined) parameter.schema = among([first, ...others], [parameter.schema]);
    if (first !== undefined) parameter["example"] = first;
    if (parameter.name === "max_wait_s") parameter.schema["maximum"] = MOST_WAIT_S;
  }
}

function idsFor(noun: string, method: string, path: string, { ids, spare, ended, training }: Known) {
  if (path === STREAM) return [ended];
  if (OF_TRAINING.test(path)) return [training];
  return (ENDS.test(`${method} ${path}`) ? spare : ids)[noun] ?? [];
}

/** The document has the schema of one line. */
function readLines({ responses }: z.infer<typeof Operation>): void {
  for (const { content } of Object.values(responses)) {
    const lines = content?.["application/jsonl"];
    if (lines !== undefined) lines.schema = { type: "array", items: lines.schema };
  }
}

/**
 * A member of a sent body or of an event: its fields are text on the wire, and our schema describes the parsed text.
 */
function memberOf(schema: string, name: string, member: Json, names: readonly string[] | undefined): Json {
  if (/(Request|Patch|VersionReport|InlineEndpoint)$/.test(schema)) {
    const branches = z.array(Json).parse(member["anyOf"] ?? []);
    const others = branches.filter(({ type }) => type !== "string");
    return names === undefined ? member : among(names, others);
  }
  if (!schema.endsWith("Event") || name === "event") return member;
  return { type: "string", contentMediaType: "application/json", contentSchema: member };
}

function among(names: readonly string[], others: readonly Json[]): Json {
  return { anyOf: [{ enum: names }, ...others] };
}

function exampleOf(value: unknown, names: readonly string[] | undefined): unknown {
  return typeof value === "string" ? (names?.[0] ?? value) : value;
}

function plainly(key: string, value: unknown): unknown {
  if (key === "pattern" && /\\p\{/.test(String(value))) return PRINTABLE;
  if (key === "max_wait_s" && typeof value === "number") return MOST_WAIT_S;
  const schema = Json.safeParse(value).data;
  if (schema === undefined) return value;
  if (key === "max_wait_s") return { ...schema, maximum: MOST_WAIT_S };
  const { allOf, prefixItems, ...rest } = schema;
  if (allOf !== undefined) return { ...rest, pattern: ADDRESS };
  return prefixItems === undefined ? schema : { ...rest, items: { anyOf: prefixItems } };
}
