/** Webhook endpoints and their deliveries on the wire. A secret is shown once, when it is created. */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";
import { OUTBOUND_EVENTS } from "../contract/outbound-event.ts";
import { Count, EXAMPLE, listOf, MaybeText, named, namedInput, PageLimit, Seconds } from "../contract/primitives.ts";
import { ShownText, WebAddress } from "../contract/shown-text.ts";

/** Sent on request, whatever the endpoint's event filter. */
export const TEST_EVENT = "webhook.test";

const FAMILIES = ["run.*", "batch.*", "weights.*", "replica.*", "budget.*", "trigger.*", "environment.*"] as const;

/** An event name, or all events of a family. */
const Wanted = z.enum([...OUTBOUND_EVENTS, ...FAMILIES]);

const Events = z
  .array(Wanted)
  .min(1)
  .max(LIMITS.webhookEvents)
  .nullable()
  .describe("event names, or `run.*` for all with that prefix; null: all events of the project")
  .meta({ example: ["run.*", "batch.dead"] });

const Url = WebAddress.regex(/^[^#]*$/, { error: "must not contain a fragment" }).meta({
  example: "https://hooks.example/rollcall",
});
const Description = ShownText.max(500);

export const WebhookRequest = namedInput("WebhookEndpointRequest", {
  url: Url,
  description: Description.default(""),
  events: Events.default(null),
});
export type WebhookRequest = z.output<typeof WebhookRequest>;
export type WebhookRequestInput = z.input<typeof WebhookRequest>;

/** Only the given fields change. */
export const WebhookPatch = z
  .strictObject({
    url: Url,
    description: Description,
    events: Events,
    disabled: z.boolean().describe("false: it receives new events again; true: it receives none"),
  })
  .partial()
  .meta({ id: "WebhookEndpointPatch" });
export type WebhookPatch = z.output<typeof WebhookPatch>;

export const RotateWebhookSecret = namedInput("RotateWebhookSecretRequest", {
  overlap_s: z
    .int()
    .min(0)
    .max(LIMITS.webhookOverlapSeconds)
    .default(86_400)
    .describe("seconds that the old secret also signs deliveries"),
});
export type RotateWebhookSecret = z.output<typeof RotateWebhookSecret>;

export const DELIVERY_STATES = ["pending", "delivered", "failed", "dropped"] as const;
export const DeliveryState = z.enum(DELIVERY_STATES);
export type DeliveryState = z.infer<typeof DeliveryState>;

export const WebhookBacklog = named("WebhookBacklog", {
  pending: Count.describe("deliveries that are pending or being retried"),
  pending_bytes: Count,
  failed: Count.describe("deliveries given up and kept for a replay"),
  dropped: Count.describe("deliveries dropped because there were too many, since the endpoint was created"),
  failures_in_a_row: Count,
  resting_until: Seconds.nullable().describe("until when its server asked to wait (Retry-After); null: it did not"),
});
export type WebhookBacklog = z.infer<typeof WebhookBacklog>;

export const WebhookView = named("WebhookEndpoint", {
  object: z.literal("webhook_endpoint"),
  id: z.string().meta({ example: EXAMPLE.webhook }),
  url: z.string().meta({ example: "https://hooks.example/rollcall" }),
  description: z.string().meta({ example: "CI" }),
  events: z
    .array(z.string())
    .nullable()
    .meta({ example: ["run.*", "batch.dead"] }),
  disabled_at: Seconds.nullable().meta({ example: null }),
  disabled_reason: MaybeText.describe("why it no longer receives events"),
  secrets: z
    .array(z.object({ expires_at: Seconds.nullable().meta({ example: null }) }))
    .describe("the signing secrets, newest first, without their values")
    .meta({ example: [{ expires_at: null }] }),
  backlog: WebhookBacklog,
  created_at: Seconds,
  updated_at: Seconds,
});
export type WebhookView = z.infer<typeof WebhookView>;
export const WebhookList = listOf(WebhookView, "WebhookEndpointList", EXAMPLE.webhook);

/** With its newest secret, only in the reply that created it. */
export const CreatedWebhook = named("CreatedWebhookEndpoint", {
  ...WebhookView.shape,
  secret: MaybeText.describe("shown once; null in the reply to a repeat").meta({
    example: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
  }),
});
export type CreatedWebhook = z.infer<typeof CreatedWebhook>;

export const WebhookDelivery = named("WebhookDelivery", {
  object: z.literal("webhook_delivery"),
  id: z.string().describe("the webhook-id of every attempt").meta({ example: EXAMPLE.delivery }),
  event: z.string().describe("id of the event").meta({ example: "evt_01ks2h9q4e7mxw3f0tbn8vc5za2k7p4mxq_41" }),
  type: z.string().meta({ example: "run.completed" }),
  subject: z.string().describe("deliveries about it come in order").meta({ example: EXAMPLE.run }),
  state: DeliveryState.meta({ example: "delivered" }),
  attempts: Count.meta({ example: 1 }),
  next_attempt_at: Seconds.nullable()
    .describe("null: it waits for an earlier one, or is finished")
    .meta({ example: null }),
  status: z.int().nullable().describe("HTTP status of the last answer").meta({ example: 204 }),
  answer: MaybeText.describe("start of the answer, on one line"),
  error: MaybeText.describe("error of the last attempt, or why it was given up"),
  latency_ms: Count.nullable().describe("time of the last attempt").meta({ example: 120 }),
  created_at: Seconds,
  attempted_at: Seconds.nullable(),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;
export const DeliveryList = listOf(WebhookDelivery, "WebhookDeliveryList", EXAMPLE.delivery);

/** The body of a delivery, signed as Standard Webhooks specifies. */
export const WebhookEvent = named("WebhookEvent", {
  id: z.string().describe("of the event; the header webhook-id is the delivery's").meta({
    example: "evt_01ks2h9q4e7mxw3f0tbn8vc5za2k7p4mxq_41",
  }),
  object: z.literal("event"),
  type: z.string().meta({ example: "run.completed" }),
  timestamp: z.string().describe("when it happened, ISO 8601").meta({ example: "2026-10-14T18:13:20.000Z" }),
  created_at: Seconds,
  data: z.record(z.string(), z.unknown()).meta({ example: { run_id: EXAMPLE.run, status: "completed", error: null } }),
});
export type WebhookEvent = z.infer<typeof WebhookEvent>;

/** Deliveries that ended between these times. */
export const ReplayRequest = namedInput("WebhookReplayRequest", {
  after: Seconds.describe("of events delivered or given up at this second or later"),
  before: Seconds.optional().describe("and before this second; default: now"),
  states: z
    .array(z.enum(["delivered", "failed"]))
    .min(1)
    .max(2)
    .default(["failed"]),
});
export type ReplayRequest = z.output<typeof ReplayRequest>;
export type ReplayRequestInput = z.input<typeof ReplayRequest>;

export const Replayed = named("WebhookReplay", {
  object: z.literal("webhook_replay"),
  id: z.string().describe("the endpoint").meta({ example: EXAMPLE.webhook }),
  replayed: Count.meta({ example: 12 }),
});
export type Replayed = z.infer<typeof Replayed>;

export const DeliveriesQuery = z.strictObject({
  state: DeliveryState.optional(),
  after: z
    .string()
    .regex(/^msg_\w{1,200}$/, { error: "is not the id of a delivery" })
    .optional()
    .describe("id of the last delivery of the previous page")
    .meta({ example: EXAMPLE.delivery }),
  limit: PageLimit,
});
export type DeliveriesQuery = z.output<typeof DeliveriesQuery>;
