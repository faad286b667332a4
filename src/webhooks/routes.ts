/** Routes for webhook endpoints and their deliveries. A secret is shown once. */

import { EXAMPLE } from "../contract/primitives.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { answer, ask, readBody, readQuery } from "../kernel/http/answer.ts";
import { idempotencyKeyOf } from "../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../kernel/http/operation.ts";
import { resourceOperations } from "../kernel/http/resource.ts";
import { findWebhook, listWebhooks } from "./queries.ts";
import {
  CreatedWebhook,
  DeliveriesQuery,
  DeliveryList,
  Replayed,
  ReplayRequest,
  RotateWebhookSecret,
  WebhookDelivery,
  WebhookList,
  WebhookPatch,
  WebhookRequest,
  WebhookView,
} from "./wire.ts";

const PATH = "/v1/webhook-endpoints";
const ONE = `${PATH}/{id}`;
const NOT_NEEDED = { "Idempotency-Key": "accepted but not needed: a receiver recognizes a repeat by its webhook-id" };
/** CPU of a test: it is stored and sent. In milliseconds. */
const TEST_COST_MS = 10;

const service = serviceOf<typeof import("./service.ts")>("webhooks");

export const webhookOperations: readonly Operation[] = [
  ...resourceOperations({
    noun: "webhook endpoint",
    path: PATH,
    permissions: { read: "webhooks:read", write: "webhooks:write" },
    schema: WebhookView,
    example: EXAMPLE.webhook,
    find: ({ env, var: { scope } }, id) => findWebhook(databaseOf(env), scope, id),
    show: (context, webhooks) =>
      service(context).showWebhooks(context.env, context.var.scope, webhooks, context.var.now()),
    create: {
      summary: "Create a webhook endpoint; its requests are signed as Standard Webhooks specifies",
      description:
        "It receives events from then on, within 5 seconds. An endpoint with `budget.*` also receives the organisation's budget events, which needs `billing:write` and a key of the whole organisation.",
      body: { schema: WebhookRequest },
      reply: { description: "The endpoint, with its secret, shown only once", schema: CreatedWebhook },
      errors: ["url_not_allowed"],
      run: (context, request, options) =>
        service(context).createWebhook(context.env, context.var.scope, context.var.caller, request, options),
    },
    list: {
      summary: "List webhook endpoints, with their pending deliveries",
      reply: { description: "One page of endpoints", schema: WebhookList },
      run: ({ env, var: { scope } }, page) => listWebhooks(databaseOf(env), scope, page),
    },
    get: {
      summary: "Read a webhook endpoint, with its pending deliveries",
      reply: { description: "The endpoint, without its secrets" },
    },
    update: {
      summary: "Change or enable a webhook endpoint: only the given fields",
      description:
        "Deliveries given up while it was disabled stay in its log until they are replayed. Deliveries in flight may still arrive at the old address.",
      body: { schema: WebhookPatch, example: { events: ["run.*"], disabled: false } },
      reply: { description: "The changed endpoint" },
      errors: ["url_not_allowed"],
      run: (context, webhook, patch) => {
        const { scope, caller, now } = context.var;
        return service(context).changeWebhook(context.env, scope, caller, webhook, patch, now());
      },
    },
    delete: {
      summary: "Delete a webhook endpoint, with its secrets, its deliveries and its log",
      run: (context, webhook) => service(context).removeWebhook(context.env, context.var.scope, webhook),
    },
  }),
  {
    id: "rotateWebhookSecret",
    urgent: true,
    route: `POST ${ONE}/rotate-secret`,
    permission: "webhooks:write",
    summary: "Create a new secret; the old one still signs deliveries for a while",
    description: "Each request creates a secret.",
    headers: { "Idempotency-Key": "accepted but ignored: a secret is shown once" },
    body: { schema: RotateWebhookSecret, example: { overlap_s: 86_400 } },
    reply: { description: "The endpoint, with its new secret, shown only once", schema: CreatedWebhook },
    errors: ["conflict"],
    handle: rotateOne,
  },
  {
    id: "listWebhookDeliveries",
    route: `GET ${ONE}/deliveries`,
    permission: "webhooks:read",
    summary: "List the deliveries of an endpoint, newest first",
    query: DeliveriesQuery,
    reply: { description: "One page of deliveries", schema: DeliveryList },
    handle: listDeliveries,
  },
  {
    id: "replayWebhookDelivery",
    route: `POST ${ONE}/deliveries/{msg}/replay`,
    permission: "webhooks:write",
    summary: "Replay a delivery, with the same webhook-id",
    headers: NOT_NEEDED,
    reply: {
      description: "The pending delivery",
      schema: WebhookDelivery,
      example: { state: "pending", attempts: 0 },
    },
    errors: ["conflict"],
    handle: (context) => answer(context, service(context).replayDelivery, pathParam(context, "msg")),
  },
  {
    id: "replayWebhookDeliveries",
    route: `POST ${ONE}/replay`,
    permission: "webhooks:write",
    summary: "Replay the deliveries of a time span",
    description: "By default those that were given up; oldest first, as many as the queue has space for.",
    headers: NOT_NEEDED,
    body: { schema: ReplayRequest, example: { after: 1_792_000_000 } },
    reply: { description: "The number of replayed deliveries", schema: Replayed },
    errors: ["conflict"],
    handle: replayMany,
  },
  {
    id: "testWebhookEndpoint",
    route: `POST ${ONE}/test`,
    permission: "webhooks:write",
    costMs: TEST_COST_MS,
    summary: "Send a webhook.test event to an endpoint, whatever its event filter",
    headers: { "Idempotency-Key": "accepted but ignored: each call sends one" },
    reply: {
      status: 202,
      description: "The pending delivery; its result appears in the log",
      schema: WebhookDelivery,
      example: { type: "webhook.test", state: "pending", attempts: 0 },
    },
    errors: ["conflict"],
    handle: testOne,
  },
];

async function rotateOne(context: ApiContext): Promise<Response> {
  const { overlap_s } = await readBody(context, RotateWebhookSecret);
  const { caller, now } = context.var;
  return context.json(await ask(context, service(context).rotateWebhook, caller, overlap_s, now()));
}

async function listDeliveries(context: ApiContext): Promise<Response> {
  const page = await ask(context, service(context).readDeliveries, readQuery(context, DeliveriesQuery));
  const [first_id = null, last_id = null] = [page.data[0]?.id, page.data.at(-1)?.id];
  return context.json({ object: "list", data: page.data, first_id, last_id, has_more: page.has_more });
}

async function replayMany(context: ApiContext): Promise<Response> {
  const request = await readBody(context, ReplayRequest);
  return context.json(await ask(context, service(context).replayDeliveries, request, context.var.now()));
}

async function testOne(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  return context.json(await ask(context, service(context).testWebhook, context.var.now()), 202);
}
