/**
 * Prints the same run as a command, as a curl request and as TypeScript. None of them contains a key: each names the
 * environment variable that holds it. Pure.
 */
import type { Json, JsonObject } from "../../../contract/json.ts";

export const SNIPPETS = ["CLI", "curl", "TypeScript"] as const;
export type SnippetKind = (typeof SNIPPETS)[number];

export function snippetOf(kind: SnippetKind, request: JsonObject, origin: string): string {
  if (kind === "CLI") return cliOf(request, origin);
  return kind === "curl" ? curlOf(request, origin) : typescriptOf(request, origin);
}

const KEY = "MODEL_API_KEY";

/** The request with a placeholder for its endpoint's key, and whether it had one. */
function withoutKey(request: JsonObject): { readonly request: JsonObject; readonly hasKey: boolean } {
  const { endpoint } = request;
  if (!isObject(endpoint) || endpoint["api_key"] === undefined) return { request, hasKey: false };
  const { api_key: _key, ...rest } = endpoint;
  return { request: { ...request, endpoint: rest }, hasKey: true };
}

function curlOf(given: JsonObject, origin: string): string {
  const { request, hasKey } = withoutKey(given);
  const body = JSON.stringify(request, null, 2);
  const send = `curl "${origin}/v1/runs" \\
  -H "Authorization: Bearer $ROLLCALL_API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: $(uuidgen)" \\
  -d @-`;
  if (!hasKey) return `${send} <<'JSON'\n${body}\nJSON`;
  return `jq '.endpoint.api_key = env.${KEY}' <<'JSON' | ${send}\n${body}\nJSON`;
}

function typescriptOf(given: JsonObject, origin: string): string {
  const { request, hasKey } = withoutKey(given);
  const { endpoint } = request;
  const shown: Shown =
    hasKey && isObject(endpoint) ? { ...request, endpoint: { ...endpoint, api_key: CODE } } : request;
  return `import { RollcallClient } from "rollcall/sdk";

const client = new RollcallClient({
  baseUrl: ${JSON.stringify(origin)},
  apiKey: process.env["ROLLCALL_API_KEY"],
});

const run = await client.runs.create(${literal(shown, "")});

for await (const event of client.runs.events(run.id)) console.log(event.event, event.data);
`;
}

/** Marks a place where code is printed instead of a value. */
const CODE = Symbol("the key's variable");
type Shown = Json | typeof CODE | readonly Shown[] | { readonly [name: string]: Shown };

function literal(value: Shown, indent: string): string {
  if (value === CODE) return `process.env["${KEY}"]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return `[\n${value.map((one: Shown) => `${inner}${literal(one, inner)},\n`).join("")}${indent}]`;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return "{}";
  const lines = entries.map(([name, one]) => `${inner}${propertyName(name)}: ${literal(one, inner)},\n`);
  return `{\n${lines.join("")}${indent}}`;
}

function propertyName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) && name !== "__proto__" ? name : `[${JSON.stringify(name)}]`;
}

/** Runs the installed Rollcall. Without it, npm would fetch a package of this name that is not ours. */
export const ROLLCALL = "npx --no-install rollcall";

/** A command in the folder of a local platform finds it by itself. */
export function isLocal(origin: string): boolean {
  return /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(origin);
}

/** Fields without a flag go into a file that the command reads. */
function cliOf(given: JsonObject, origin: string): string {
  const { request, hasKey } = withoutKey(given);
  const { kind, environment, ...rest } = request;
  const isTraining = kind === "training";
  const { flags, left } = flagsOf(rest, isTraining ? { ...FLAGS, ...TRAINING_FLAGS } : FLAGS);
  // The command has other defaults: a trainer of this package, and evals before and after.
  const ways = isTraining ? [...(rest["trainer"] === undefined ? ["--trainer pull"] : []), "--eval-examples 0"] : [];
  const hasFile = Object.keys(left).length > 0;
  const command = [
    `${ROLLCALL} ${isTraining ? "train" : "eval"} ${quoted(textOf(environment))}`,
    ...(isLocal(origin) ? [] : [`--platform ${origin}`]),
    ...(hasFile ? ["-f run.json"] : []),
    ...flags,
    ...(hasKey ? [`-k ${KEY}`] : []),
    ...ways,
  ].join(" \\\n  ");
  return hasFile ? `cat > run.json <<'JSON'\n${JSON.stringify(left, null, 2)}\nJSON\n${command}` : command;
}

interface FlagsOfAll {
  readonly flags: readonly string[];
  readonly left: JsonObject;
}

/** The flags for a request, and the rest of it that has no flag. */
function flagsOf(request: JsonObject, by: Readonly<Record<string, FlagPrinter>>): FlagsOfAll {
  const flags: string[] = [];
  const left: Record<string, Json> = {};
  for (const [name, value] of Object.entries(request)) {
    const printed = by[name]?.(value) ?? { flags: [], left: value };
    flags.push(...printed.flags);
    if (printed.left !== undefined) left[name] = printed.left;
  }
  return { flags, left };
}

interface FlagsAndRest {
  readonly flags: readonly string[];
  /** The part of the value that no flag covers. */
  readonly left?: Json | undefined;
}
type FlagPrinter = (value: Json | undefined) => FlagsAndRest;

const flag =
  (name: string): FlagPrinter =>
  (value) => ({ flags: [`${name} ${quoted(textOf(value))}`] });

const FLAGS: Readonly<Record<string, FlagPrinter>> = {
  model: flag("-m"),
  endpoint: (value) => {
    if (!isObject(value)) return flag("-e")(value);
    const { base_url, ...left } = value;
    return { flags: [`-b ${quoted(textOf(base_url))}`], left: someOf(left) };
  },
  fleet: flag("--fleet"),
  environment_args: (value) => ({ flags: [`-a ${quoted(JSON.stringify(value))}`] }),
  dataset: (value) => (typeof value === "string" ? flag("--dataset")(value) : { flags: [], left: value }),
  num_examples: flag("-n"),
  rollouts_per_example: flag("-r"),
  max_concurrent: flag("-c"),
  sampling: flagsOfSampling,
  prompts: flag("--prompts"),
  shuffle: (value) => ({ flags: value === true ? ["--shuffle"] : [] }),
  answer_cache: (value) => ({ flags: value === true ? ["--cache"] : [] }),
  seed: flag("--seed"),
  max_cost_micros: (value) => ({ flags: [`--max-cost ${Number(value) / 1_000_000}`] }),
  judges: flagsOfJudges,
  limits: (value) => {
    if (!isObject(value)) return { flags: [], left: value };
    const { max_retries, ...left } = value;
    return { flags: max_retries === undefined ? [] : [`--max-retries ${textOf(max_retries)}`], left: someOf(left) };
  },
  name: flag("--name"),
  metadata: (value) => ({
    flags: Object.entries(isObject(value) ? value : {}).map(
      ([name, one]) => `--metadata ${quoted(`${name}=${textOf(one)}`)}`,
    ),
  }),
};

const TRAINING_FLAGS: Readonly<Record<string, FlagPrinter>> = {
  max_steps: flag("--max-steps"),
  group_size: flag("--group-size"),
  batch_size: (value) => {
    const rollouts = isObject(value) ? value["rollouts"] : undefined;
    return rollouts === undefined ? { flags: [], left: value } : flag("--batch-size")(rollouts);
  },
  initial_weights: (value) => flag("--initial-weights")(isObject(value) ? value["location"] : value),
  trainer: (value) => {
    const { delivery, url, ...left } = isObject(value) ? value : {};
    if (delivery === "push" && url !== undefined) {
      return { flags: [`--trainer ${quoted(`push:${textOf(url)}`)}`], left: someOf(left) };
    }
    if (delivery === "both") return { flags: ["--trainer pull"], left: value };
    return { flags: ["--trainer pull"], left: someOf(left) };
  },
};

function flagsOfSampling(value: Json | undefined): FlagsAndRest {
  if (!isObject(value)) return { flags: [], left: value };
  const { max_tokens, temperature, ...more } = value;
  return {
    flags: [
      ...(max_tokens === undefined ? [] : [`-t ${textOf(max_tokens)}`]),
      ...(temperature === undefined ? [] : [`-T ${textOf(temperature)}`]),
      ...(Object.keys(more).length === 0 ? [] : [`-S ${quoted(JSON.stringify(more))}`]),
    ],
  };
}

/** A judge with its own sampling or with an inline endpoint has no flag. */
function flagsOfJudges(value: Json | undefined): FlagsAndRest {
  const flags: string[] = [];
  const left: Record<string, Json> = {};
  for (const [name, judge] of Object.entries(isObject(value) ? value : {})) {
    const { endpoint, model, ...more } = isObject(judge) ? judge : {};
    const isPlain = typeof endpoint === "string" && typeof model === "string" && Object.keys(more).length === 0;
    if (isPlain) flags.push(`--judge ${quoted(`${name}=${model}@${endpoint}`)}`);
    else if (judge !== undefined) left[name] = judge;
  }
  return { flags, left: someOf(left) };
}

function someOf(left: JsonObject): JsonObject | undefined {
  return Object.keys(left).length === 0 ? undefined : left;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Quoted for a POSIX shell. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
