/** Triggers on the wire: addresses where another platform's webhook starts a run. Secrets are never returned. */
import * as z from "zod";
import { ResourceName } from "../contract/endpoint.ts";
import { LIMITS } from "../contract/limits.ts";
import {
  AnyObject,
  Count,
  EXAMPLE,
  listOf,
  MaybeFlag,
  MaybeText,
  named,
  namedInput,
  Seconds,
  shortObject,
} from "../contract/primitives.ts";
import { ShownText } from "../contract/shown-text.ts";
import { faultInSecret } from "../contract/signing-secret.ts";

/**
 * How a delivery proves its sender. `standard`: Standard Webhooks 1.0.0 (an HMAC of id, time and body). `github`: its
 * X-Hub-Signature-256 (an HMAC of the body). `huggingface`: the secret itself in X-Webhook-Secret.
 */
export const TRIGGER_SCHEMES = ["standard", "github", "huggingface"] as const;
export const TriggerScheme = z.enum(TRIGGER_SCHEMES);
export type TriggerScheme = z.infer<typeof TriggerScheme>;

/**
 * What a delivery does while a run of the trigger is unfinished. `allow`: starts another run. `queue`: waits for its
 * turn. `coalesce`: waits, and replaces the delivery that waited before.
 */
export const TRIGGER_CONCURRENCY = ["allow", "queue", "coalesce"] as const;
export const TriggerConcurrency = z.enum(TRIGGER_CONCURRENCY);
export type TriggerConcurrency = z.infer<typeof TriggerConcurrency>;

/**
 * The state of a delivery. `accepted`: its run is being started. `waiting`: for the previous run. `started`. `ignored`:
 * `when` is not met. `answered`: it only tested the address. `superseded`: by a later one. `refused`.
 */
export const DELIVERY_STATES = [
  "accepted",
  "waiting",
  "started",
  "ignored",
  "answered",
  "superseded",
  "refused",
] as const;
export const DeliveryState = z.enum(DELIVERY_STATES);
export type DeliveryState = z.infer<typeof DeliveryState>;

/** Further rules depend on the scheme: signing-secret.ts. */
export const TriggerSecret = z.string().min(16).max(1024);

const Path = z.string().min(1).max(200);
const atMost = <Value>(pairs: Readonly<Record<string, Value>>) => Object.keys(pairs).length <= LIMITS.triggerPaths;
const TOO_MANY = { error: `at most ${LIMITS.triggerPaths} of them` };
const Scalar = z.union([ShownText.max(512), z.number(), z.boolean(), z.null()]);

/** Five fields of cron: minute, hour, day of the month, month, day of the week. Checked further by schedule.ts. */
export const TriggerSchedule = z
  .strictObject({
    cron: ShownText.max(100)
      .regex(/^[^ ]+( [^ ]+){4}$/, { error: "must be five fields with one space between them, as in 0 6 * * 1" })
      .describe("minute, hour, day of the month, month and day of the week")
      .meta({ example: "0 6 * * 1" }),
    timezone: ShownText.min(1).max(64).default("UTC").describe("a name of the IANA database").meta({ example: "UTC" }),
  })
  .meta({ id: "TriggerSchedule" });
export type TriggerSchedule = z.output<typeof TriggerSchedule>;

const Fields = {
  schedule: TriggerSchedule.nullable()
    .describe("starts the run by itself, at the earliest every 5 minutes; null: only deliveries start it")
    .meta({ example: null }),
  run: shortObject(LIMITS.triggerRunCharacters, "upload the rows as a dataset and use its name")
    .describe("the run to start, as for POST /v1/runs, without keys: endpoints are given by name, not inline")
    .meta({ example: { environment: "gsm8k@1", model: "qwen3-4b", endpoint: "qwen", metadata: {} } }),
  map: z
    .record(Path, Path)
    .refine(atMost, TOO_MANY)
    .describe("fields of the run, each with the payload path that fills it: $ followed by names and [numbers]")
    .meta({ example: { "metadata.sha": "$.after" } }),
  when: z
    .record(Path, z.union([Scalar, z.array(Scalar).min(1).max(LIMITS.triggerPaths)]))
    .refine(atMost, TOO_MANY)
    .refine((when) => JSON.stringify(when).length <= LIMITS.triggerWhenCharacters, {
      error: `must be at most ${LIMITS.triggerWhenCharacters} characters of JSON`,
    })
    .describe("required values by payload path, or lists of allowed values; other payloads start nothing")
    .meta({ example: { "$.ref": "refs/heads/main" } }),
  concurrency: TriggerConcurrency.meta({ example: "queue" }),
};

export const TriggerRequest = namedInput("TriggerRequest", {
  name: ResourceName.meta({ example: "on-merge" }),
  verify: z
    .strictObject({
      scheme: TriggerScheme.meta({ example: "github" }),
      secret: TriggerSecret.optional()
        .describe("the signing secret; for `standard` it is generated if left out")
        .meta({ example: "a-long-shared-secret" }),
    })
    .refine(({ scheme, secret }) => scheme === "standard" || secret !== undefined, {
      error: "is required: configure it at the sender too",
      path: ["secret"],
    })
    .superRefine(({ scheme, secret }, context) => {
      const fault = secret === undefined ? null : faultInSecret(scheme, secret);
      if (fault !== null) context.addIssue({ code: "custom", message: fault, path: ["secret"] });
    })
    .default({ scheme: "standard" })
    .describe("how deliveries prove their sender; by default `standard`, with a generated secret")
    .meta({ example: {} }),
  schedule: Fields.schedule.default(null),
  run: Fields.run,
  map: Fields.map.default({}),
  when: Fields.when.default({}),
  concurrency: Fields.concurrency.default("allow"),
});
export type TriggerRequest = z.output<typeof TriggerRequest>;
export type TriggerRequestInput = z.input<typeof TriggerRequest>;

/** Only the given fields change. */
export const TriggerPatch = z
  .strictObject({
    name: ResourceName,
    secret: TriggerSecret,
    ...Fields,
    disabled: z.boolean().describe("true: deliveries are refused, and its schedule starts nothing"),
  })
  .partial()
  .meta({ id: "TriggerPatch" });
export type TriggerPatch = z.output<typeof TriggerPatch>;

export const TriggerView = named("Trigger", {
  object: z.literal("trigger"),
  id: z.string().meta({ example: EXAMPLE.trigger }),
  name: z.string().meta({ example: "on-merge" }),
  url: z
    .string()
    .describe("where the sender posts")
    .meta({ example: `https://rollcall.example/hooks/${EXAMPLE.trigger}` }),
  verify: z.object({ scheme: TriggerScheme.meta({ example: "github" }) }),
  ...Fields,
  next_at: Seconds.nullable()
    .describe("when its schedule starts the next run; null without a schedule, or while it is disabled")
    .meta({ example: null }),
  disabled: z.boolean().meta({ example: false }),
  created_by: z
    .string()
    .describe("the key or person that created it, or last changed its run or secret: they own and pay for its runs")
    .meta({ example: EXAMPLE.key }),
  created_at: Seconds,
  updated_at: Seconds,
});
export type TriggerView = z.infer<typeof TriggerView>;
export const TriggerList = listOf(TriggerView, "TriggerList", EXAMPLE.trigger);

/** The reply that creates a trigger shows its generated secret, once. */
export const CreatedTrigger = TriggerView.extend({
  secret: MaybeText.describe("generated and shown once; null if you set it, and in the reply to a repeat").meta({
    example: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
  }),
}).meta({ id: "CreatedTrigger" });
export type CreatedTrigger = z.infer<typeof CreatedTrigger>;

const Problem = z.object({ code: z.string(), message: z.string(), param: MaybeText });
const SENT_ID = "72d3162e-cc78-11e3-81ab-4c9367dc0958";

/** A delivery in the trigger's log. */
export const TriggerDelivery = named("TriggerDelivery", {
  object: z.literal("trigger_delivery"),
  id: z.string().describe("increases within the trigger").meta({ example: "41" }),
  trigger_id: z.string().meta({ example: EXAMPLE.trigger }),
  delivery_id: MaybeText.describe("the sender's id; null if the sender is unknown, or sent none").meta({
    example: SENT_ID,
  }),
  event: MaybeText.describe("the sender's event name, if any").meta({ example: "push" }),
  state: DeliveryState.meta({ example: "started" }),
  run_id: MaybeText.meta({ example: EXAMPLE.run }),
  error: Problem.nullable().describe("why it was refused, as for a run").meta({ example: null }),
  superseded_by: MaybeText.describe("the delivery that replaced it"),
  more: Count.describe("similar refused deliveries since the previous one, not listed"),
  at: Seconds,
});
export type TriggerDelivery = z.infer<typeof TriggerDelivery>;
export const TriggerDeliveryList = listOf(TriggerDelivery, "TriggerDeliveryList", "41");

/** The answer to a sender. */
export const TriggerReceipt = named("TriggerReceipt", {
  run_id: MaybeText.describe("null if none was started yet").meta({ example: EXAMPLE.run }),
  duplicate: z.boolean().describe("this delivery is a repeat"),
  state: DeliveryState.meta({ example: "started" }),
  reason: MaybeText.describe("why it started nothing"),
});
export type TriggerReceipt = z.infer<typeof TriggerReceipt>;

const HeaderName = z
  .string()
  .max(100)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error: "is not a valid header name" });
const HeaderValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, { error: "is not a valid header value" });

export const TriggerTestRequest = namedInput("TriggerTestRequest", {
  payload: AnyObject.optional()
    .describe("what a sender would post")
    .meta({ example: { ref: "refs/heads/main", after: "6113728f27ae82c7b1a177c8d03f9e96e0adf246" } }),
  body: z.string().optional().describe("the payload as exact text, to check its signature"),
  headers: z.record(HeaderName, HeaderValue).optional().describe("its headers; absent: the signature is not checked"),
}).refine(({ payload, body }) => (payload === undefined) !== (body === undefined), {
  error: "send either payload or body",
  path: ["payload"],
});
export type TriggerTestRequest = z.output<typeof TriggerTestRequest>;
export type TriggerTestRequestInput = z.input<typeof TriggerTestRequest>;

export const TriggerTest = named("TriggerTest", {
  object: z.literal("trigger_test"),
  verified: MaybeFlag.describe("null if no headers were given").meta({ example: null }),
  would: z.enum(["begin", "ignore", "answer", "refuse"]).meta({ example: "begin" }),
  delivery_id: MaybeText,
  event: MaybeText,
  when: z
    .array(z.object({ path: z.string(), holds: z.boolean(), found: Scalar }))
    .describe("each condition, and the payload's value there")
    .meta({ example: [{ path: "$.ref", holds: true, found: "refs/heads/main" }] }),
  request: AnyObject.nullable()
    .describe("the run that it would start")
    .meta({ example: { environment: "gsm8k@1", model: "qwen3-4b", endpoint: "qwen" } }),
  errors: z.array(Problem).describe("why it would be refused").meta({ example: [] }),
});
export type TriggerTest = z.infer<typeof TriggerTest>;
