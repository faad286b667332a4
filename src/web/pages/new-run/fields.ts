/** The fields of the form that starts a run: each has the path of its value in the request. Pure. */
import type { EnvironmentView } from "../../../contract/run.ts";

export type FieldKind = "text" | "secret" | "long" | "number" | "integer" | "choice" | "json" | "dollars" | "pairs";

export interface Field {
  /** The path of its value in the request, name by name. */
  readonly path: readonly string[];
  readonly label: string;
  readonly kind: FieldKind;
  readonly help?: string | undefined;
  /** The values, for a choice. */
  readonly options?: readonly unknown[];
  /** Shown in an empty field: the default. */
  readonly placeholder?: string | undefined;
  readonly required?: boolean;
  /** The kind of resource that is offered. */
  readonly known?: "endpoints" | "fleets" | "datasets" | "models";
  /** For models: the param of the endpoint that has them; default: `endpoint`. */
  readonly endpointParam?: string;
}

/** The name that the API uses when it refuses a value. */
export function paramOf({ path }: Pick<Field, "path">): string {
  return path.join(".");
}

export type Kind = "eval" | "training";
export const PLACES = ["endpoint", "url", "fleet"] as const;
export type Place = (typeof PLACES)[number];

export interface Section {
  readonly name: string;
  readonly fields: readonly Field[];
  /** Whether the place of the model is chosen in it. */
  readonly hasPlace?: boolean;
  /** Most evals leave all its fields empty. */
  readonly isRare?: boolean;
}

/** `id@version`; empty without an environment. */
export function labelOf(environment: EnvironmentView | undefined): string {
  return environment === undefined ? "" : `${environment.id}@${environment.version}`;
}

/** The fields for the current choices; values of other fields are not sent. */
export function sectionsOf(kind: Kind, place: Place, environment: EnvironmentView | undefined): readonly Section[] {
  return [
    { name: "Arguments of the environment", fields: argumentFields(environment?.args ?? {}) },
    { name: "Tasks", fields: [...datasetFields(environment), ...(kind === "eval" ? EVAL_TASKS : []), ...ORDER] },
    { name: "Model", fields: [...PLACE_FIELDS[place], MODEL], hasPlace: true },
    { name: "Judges", fields: judgeFields(environment), isRare: environment?.judges.length === 0 },
    { name: "Sampling", fields: [...SAMPLING, PROMPTS, ...(kind === "eval" ? [ANSWER_CACHE] : [])], isRare: true },
    ...(kind === "training" ? [{ name: "Training", fields: [...TRAINING, ...TRAINING_AT[place]] }] : []),
    { name: "Limits", fields: kind === "eval" ? [...LIMIT_FIELDS, MIN_SCORED] : LIMIT_FIELDS, isRare: true },
    { name: "To find the run again", fields: FOUND_BY, isRare: true },
  ].filter(({ fields }) => fields.length > 0);
}

const FIRST: ReadonlySet<string> = new Set([
  ...["dataset", "num_examples", "max_steps", "endpoint", "endpoint.base_url", "endpoint.api_key", "fleet", "model"],
]);

export interface Fold {
  readonly shown: readonly Section[];
  readonly folded: readonly Section[];
}

/** Few fields are shown first: those that most runs need, and those that must be filled in. */
export function foldFields(sections: readonly Section[]): Fold {
  const isFirst = (field: Field) => FIRST.has(paramOf(field)) || field.required === true;
  const parts = sections.map(({ fields, hasPlace = false, ...section }) => ({
    shown: { ...section, hasPlace, fields: fields.filter(isFirst) },
    folded: { ...section, fields: fields.filter((field) => !isFirst(field)) },
  }));
  const some = ({ fields }: Section) => fields.length > 0;
  return {
    shown: parts.map(({ shown }) => shown).filter(some),
    folded: parts.map(({ folded }) => folded).filter(some),
  };
}

/** The rarely used sections are folded. */
export function foldSections(sections: readonly Section[]): Fold {
  return { shown: sections.filter(({ isRare }) => !isRare), folded: sections.filter(({ isRare }) => isRare) };
}

const MODEL: Field = { path: ["model"], label: "Model", kind: "text", required: true, known: "models" };

const PLACE_FIELDS: Readonly<Record<Place, readonly Field[]>> = {
  endpoint: [{ path: ["endpoint"], label: "Endpoint", kind: "text", required: true, known: "endpoints" }],
  url: [
    {
      ...{ path: ["endpoint", "base_url"], label: "Base URL", kind: "text", required: true },
      help: "OpenAI-compatible, up to and including /v1",
    },
    { path: ["endpoint", "api_key"], label: "Its key", kind: "secret", help: "stored encrypted, never shown again" },
  ],
  fleet: [{ path: ["fleet"], label: "Fleet", kind: "text", required: true, known: "fleets" }],
};

/** The texts of the fields without those of secrets, by param. */
export function withoutSecrets(texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const secrets = Object.values(PLACE_FIELDS).flatMap((fields) => fields.filter(({ kind }) => kind === "secret"));
  const params = new Set(secrets.map(paramOf));
  return Object.fromEntries(Object.entries(texts).filter(([param]) => !params.has(param)));
}

function datasetFields(environment: EnvironmentView | undefined): readonly Field[] {
  if (environment !== undefined && environment.dataset !== "uploaded" && environment.dataset !== null) return [];
  return [
    {
      path: ["dataset"],
      label: "Dataset",
      kind: "text",
      known: "datasets",
      help: "an uploaded dataset",
    },
    {
      path: ["dataset", "rows"],
      label: "Or rows",
      kind: "json",
      help: "a list of rows in JSON, instead of a dataset",
    },
  ];
}

const EVAL_TASKS: readonly Field[] = [
  {
    ...{ path: ["num_examples"], label: "Tasks", kind: "integer", placeholder: "all" },
    help: "an environment with endless tasks needs a number",
  },
  { path: ["rollouts_per_example"], label: "Rollouts per task", kind: "integer", placeholder: "1" },
];
const ORDER: readonly Field[] = [
  { path: ["shuffle"], label: "Shuffle the tasks", kind: "choice", options: [true, false], placeholder: "false" },
  { path: ["seed"], label: "Seed of the order", kind: "integer", placeholder: "0" },
];

const SAMPLING: readonly Field[] = [
  { path: ["sampling", "temperature"], label: "Temperature", kind: "number", placeholder: "the environment's" },
  {
    path: ["sampling", "max_tokens"],
    label: "Maximum tokens of a reply",
    kind: "integer",
    placeholder: "the environment's",
  },
  { path: ["sampling", "top_p"], label: "Top p", kind: "number" },
  { path: ["sampling", "seed"], label: "Sampling seed", kind: "integer" },
  { path: ["sampling"], label: "More sampling", kind: "json", help: 'a JSON object, such as {"stop": ["\\n"]}' },
];

const TRAINING: readonly Field[] = [
  { path: ["max_steps"], label: "Steps", kind: "integer", required: true },
  { path: ["group_size"], label: "Rollouts per task", kind: "integer", placeholder: "8" },
  { path: ["batch_size", "rollouts"], label: "Rollouts per step", kind: "integer", placeholder: "128" },
  {
    ...{ path: ["advantage", "name"], label: "Advantage", kind: "choice", placeholder: "mean" },
    options: ["mean", "mean_std", "rloo", "max_rl", "none"],
  },
  {
    ...{ path: ["members"], label: "Members of a group of environments", kind: "json" },
    help: 'a JSON object by name, such as {"math": {"ratio": 2, "group_size": 16}}',
  },
  {
    ...{ path: ["filters", "zero_variance"], label: "Groups whose rewards are all equal", kind: "choice" },
    ...{ options: ["drop", "refill", "keep"], placeholder: "drop" },
  },
  {
    ...{ path: ["filters", "samples"], label: "Filters of single rollouts", kind: "json" },
    help: 'a JSON list, such as [{"kind": "repetition", "enforce": true}]',
  },
  {
    ...{ path: ["loss_aggregation"], label: "What has the same weight in the loss", kind: "choice" },
    ...{ options: ["token", "prompt"], placeholder: "token" },
  },
  {
    ...{ path: ["reference"], label: "Reference model", kind: "json" },
    help: 'for ref_logprobs: a JSON object, such as {"endpoint": "teacher", "model": "qwen3-32b"}',
  },
  { path: ["lead"], label: "Batches ahead of the weights", kind: "integer", placeholder: "1" },
  { path: ["max_off_policy_steps"], label: "Maximum off-policy steps", kind: "integer", placeholder: "2" },
  { path: ["holdout"], label: "Tasks held out", kind: "integer", placeholder: "0" },
  { path: ["eval", "every"], label: "Steps between evals", kind: "integer", help: "empty: no evals" },
  { path: ["eval", "num_examples"], label: "Tasks of an eval", kind: "integer", placeholder: "200" },
  {
    ...{ path: ["evals"], label: "Several evals", kind: "json" },
    help: 'instead of the two fields above: a JSON list, such as [{"name": "math", "environment": "math", "every": 20}]',
  },
  {
    ...{ path: ["trainer", "delivery"], label: "Batches to the trainer", kind: "choice", placeholder: "pull" },
    options: ["pull", "push", "both"],
  },
  { path: ["trainer", "url"], label: "The trainer's URL", kind: "text", help: "for push and both" },
];

/** An endpoint cannot be asked to load weights, so it has no such field. */
const TRAINING_AT: Readonly<Record<Place, readonly Field[]>> = {
  endpoint: [],
  url: [],
  fleet: [
    {
      ...{ path: ["initial_weights", "location"], label: "Location of version 0", kind: "text" },
      help: "each replica loads it first; empty: the engines' initial weights",
    },
  ],
};

const LIMIT_FIELDS: readonly Field[] = [
  { path: ["max_concurrent"], label: "Concurrent rollouts", kind: "integer", placeholder: "32" },
  {
    ...{ path: ["max_cost_micros"], label: "Cap, in dollars", kind: "dollars" },
    help: "with what it cannot go beyond, the rest ends as cancelled; needs tokens of a reply, and prices",
  },
  { path: ["limits", "call_timeout_s"], label: "Seconds per call", kind: "number", placeholder: "600" },
  { path: ["limits", "rollout_timeout_s"], label: "Seconds per rollout", kind: "number" },
  { path: ["limits", "deadline_s"], label: "Seconds of the run", kind: "number" },
  { path: ["limits", "max_retries"], label: "Retries per call", kind: "integer", placeholder: "2" },
];
const ANSWER_CACHE: Field = {
  ...{
    path: ["answer_cache"],
    label: "Use cached answers",
    kind: "choice",
    options: [true, false],
    placeholder: "false",
  },
  help: "a call that was answered before is not made again; needs temperature 0",
};
const PROMPTS: Field = {
  ...{
    path: ["prompts"],
    label: "Prompts",
    kind: "choice",
    options: ["messages", "token_ids", "chat_token_ids"],
    placeholder: "messages",
  },
  help: "token_ids: later turns continue the token ids of the turn before; an eval needs return_token_ids",
};
const MIN_SCORED: Field = {
  ...{ path: ["min_scored"], label: "Share that must be scored", kind: "number", placeholder: "0.95" },
  help: "else the run fails",
};

const FOUND_BY: readonly Field[] = [
  { path: ["name"], label: "Name", kind: "text" },
  { path: ["metadata"], label: "Metadata", kind: "pairs", help: "one per line, such as branch=main" },
];

function judgeFields(environment: EnvironmentView | undefined): readonly Field[] {
  const named = (environment?.judges ?? []).flatMap((judge): readonly Field[] => [
    {
      ...{ path: ["judges", judge, "endpoint"], label: `Endpoint of judge ${judge}`, kind: "text" },
      ...{ required: true, known: "endpoints" },
    },
    {
      ...{ path: ["judges", judge, "model"], label: `Model of judge ${judge}`, kind: "text", required: true },
      ...{ known: "models", endpointParam: paramOf({ path: ["judges", judge, "endpoint"] }) },
    },
  ]);
  return [
    ...named,
    { path: ["judges"], label: named.length === 0 ? "Judges" : "More judges", kind: "json", help: MORE_JUDGES },
  ];
}
const MORE_JUDGES = 'a JSON object, such as {"strict": {"endpoint": "gpu", "model": "qwen3-32b"}}';

interface Property {
  readonly type?: unknown;
  readonly enum?: unknown;
  readonly default?: unknown;
  readonly description?: unknown;
}

/** Made from the JSON Schema of an environment's arguments. A value that is an object or a list is entered as JSON. */
export function argumentFields(schema: Readonly<Record<string, unknown>>): readonly Field[] {
  const properties = schema["properties"];
  if (typeof properties !== "object" || properties === null) return [];
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(properties).map(([name, given]) => {
    const property: Property = typeof given === "object" && given !== null ? given : {};
    const { description } = property;
    return {
      path: ["environment_args", name],
      label: name,
      ...kindOf(property),
      help: typeof description === "string" ? description : undefined,
      placeholder: property.default === undefined ? undefined : written(property.default),
      required: required.includes(name) && property.default === undefined,
    };
  });
}

const LONG = 60;

function kindOf({ type, enum: options, default: preset }: Property): Pick<Field, "kind" | "options"> {
  if (Array.isArray(options)) return { kind: "choice", options };
  if (type === "boolean") return { kind: "choice", options: [true, false] };
  if (type === "integer" || type === "number") return { kind: type };
  if (type === "string") return { kind: typeof preset === "string" && preset.length > LONG ? "long" : "text" };
  return { kind: "json" };
}

/** The text of a value in its field. */
export function written(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
