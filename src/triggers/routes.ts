/** Routes for triggers, and the addresses where other platforms' webhooks start runs. */
import * as z from "zod";
import { AnyObject, EXAMPLE, PageLimit, wholeNumber } from "../contract/primitives.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { seconds } from "../kernel/db/page.ts";
import { answer, ask, readBody, readQuery } from "../kernel/http/answer.ts";
import { Refusal, unwrap } from "../kernel/http/errors.ts";
import { idempotencyKeyOf, readText } from "../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../kernel/http/operation.ts";
import { keepPace, RUN_COST_MS } from "../kernel/http/pace.ts";
import { pageOf } from "../kernel/http/page.ts";
import { resourceOperations } from "../kernel/http/resource.ts";
import { isRefused, refuseStranger, sharerOf } from "../kernel/http/strangers.ts";
import { findTrigger, listTriggers, triggerViewOf } from "./queries.ts";
import type { LoggedDelivery } from "./rpc.ts";
import type { TriggerRow } from "./tables.ts";
import {
  CreatedTrigger,
  type TriggerDelivery,
  TriggerDeliveryList,
  TriggerList,
  TriggerPatch,
  TriggerReceipt,
  TriggerRequest,
  TriggerTest,
  TriggerTestRequest,
  TriggerView,
} from "./wire.ts";

const PATH = "/v1/triggers";
const ONE = `${PATH}/{id}`;
const WITHOUT_SECRET = { description: "The trigger, without its secret" };
const NOT_NEEDED = { "Idempotency-Key": "accepted but not needed: nothing is created" };

const DeliveriesQuery = z.strictObject({
  after: wholeNumber(1).optional().describe("id of the last delivery of the previous page").meta({ example: "41" }),
  limit: PageLimit,
});

const service = serviceOf<typeof import("./service.ts")>("triggers");
const deliveries = serviceOf<typeof import("./receive-delivery.ts")>("deliveries");

export const triggerOperations: readonly Operation[] = [
  ...resourceOperations({
    noun: "trigger",
    path: PATH,
    permissions: { read: "triggers:read", write: "triggers:write" },
    schema: TriggerView,
    example: EXAMPLE.trigger,
    find: ({ env, var: { scope } }, nameOrId) => findTrigger(databaseOf(env), scope, nameOrId),
    show: (context, triggers) =>
      triggers.map((trigger) => triggerViewOf(trigger, originOf(context), context.var.now())),
    create: {
      summary: "Create a trigger: an address where another platform's webhook starts runs, or a schedule",
      description:
        "The run is validated with placeholders for payload values. Its runs belong to the caller, who also needs `runs:write`.",
      body: { schema: TriggerRequest },
      reply: { description: "The trigger", schema: CreatedTrigger },
      errors: ["not_found", "unmet_need", "missing_judge", "url_not_allowed", "invalid_row"],
      run: (context, request, options) =>
        service(context).createTrigger(context.env, context.var.scope, context.var.caller, request, options),
    },
    list: {
      summary: "List triggers",
      reply: { description: "One page of triggers, without their secrets", schema: TriggerList },
      run: ({ env, var: { scope } }, page) => listTriggers(databaseOf(env), scope, page),
    },
    get: { summary: "Read a trigger, by id or name", reply: WITHOUT_SECRET },
    update: {
      summary: "Change a trigger, by id or name: only the given fields",
      description:
        "After a change of `run`, `map`, `when`, `schedule` or `secret`, the runs belong to the caller who made it. Changes other than `name` and `disabled: true` need `runs:write`. A new secret applies at once.",
      body: { schema: TriggerPatch, example: { disabled: true } },
      reply: { ...WITHOUT_SECRET, example: { disabled: true } },
      errors: ["conflict", "unmet_need", "missing_judge", "url_not_allowed", "invalid_row"],
      run: (context, trigger, patch) => {
        const { scope, caller, now } = context.var;
        const when = { now: now(), origin: originOf(context) };
        return service(context).changeTrigger(context.env, scope, caller, trigger, patch, when);
      },
    },
    delete: {
      summary: "Delete a trigger and its log, by id or name",
      description: "Waiting deliveries start no more runs. Runs that it started continue.",
      urgent: true,
      run: (context, trigger) => service(context).deleteTrigger(context.env, context.var.scope, trigger),
    },
  }),
  {
    id: "listTriggerDeliveries",
    route: `GET ${ONE}/deliveries`,
    permission: "triggers:read",
    summary: "List the deliveries of a trigger and their results, newest first",
    description:
      "The last 1,000, and a sample of unsigned deliveries: at most six a minute, 100 in total. Refused deliveries show the reason.",
    query: DeliveriesQuery,
    reply: { description: "One page of deliveries", schema: TriggerDeliveryList },
    handle: listDeliveries,
  },
  {
    id: "testTrigger",
    route: `POST ${ONE}/test`,
    costMs: RUN_COST_MS,
    permission: "triggers:write",
    summary: "Try a payload without starting a run",
    description: "With `headers` and the exact `body`, its signature is checked as well.",
    headers: NOT_NEEDED,
    body: { schema: TriggerTestRequest },
    reply: { description: "The result", schema: TriggerTest },
    handle: async (context) => {
      const request = await readBody(context, TriggerTestRequest);
      return answer(context, deliveries(context).testTrigger, request, context.var.now());
    },
  },
  {
    id: "receiveDelivery",
    route: "POST /hooks/{id}",
    permission: "anybody",
    summary: "For webhook senders: start the trigger's run",
    description:
      "Signed in the trigger's scheme. A repeated delivery gets the same run. The answer is also 202 if `when` is not met and no run starts. If the run is refused, the answer is its error.",
    headers: {
      "webhook-id": "for `standard`: id of the delivery, without a dot",
      "webhook-timestamp": "for `standard`: seconds since the epoch, at most 300 from now",
      "webhook-signature": "for `standard`: `v1,` and base64, several separated by spaces",
      "X-Hub-Signature-256": "of `github`",
      "X-GitHub-Delivery": "for `github`: id of the delivery",
      "X-GitHub-Event": "for `github`; `ping` is answered but starts nothing",
      "X-Webhook-Secret": "for `huggingface`: the secret itself",
      "Idempotency-Key": "accepted but not needed: a delivery starts one run",
    },
    body: { schema: AnyObject, example: { ref: "refs/heads/main", after: "6113728f27ae82c7b1a177c8d03f9e96e0adf246" } },
    reply: { status: 202, description: "The result", schema: TriggerReceipt },
    errors: [
      ...(["not_found", "invalid_signature", "stale_timestamp", "rate_limited", "conflict", "forbidden"] as const),
      ...(["unknown_field", "invalid_row", "unmet_need", "missing_judge", "url_not_allowed", "storage_full"] as const),
      ...([
        "max_tokens_required",
        "prices_required",
        "insufficient_balance",
        "budget_exhausted",
        "in_progress",
      ] as const),
    ],
    handle: receive,
  },
];

async function listDeliveries(context: ApiContext): Promise<Response> {
  const { after, limit } = readQuery(context, DeliveriesQuery);
  const page = { before: after ?? null, limit: limit + 1 };
  const { trigger_id, deliveries: logged } = await ask(context, service(context).readTriggerDeliveries, page);
  return context.json(
    pageOf(
      logged.map((one) => deliveryOf(trigger_id, one)),
      limit,
    ),
  );
}

/**
 * An id with a wrong MAC costs no look-up, and an address that tries many ids or sends wrong signatures is slowed down.
 * For a slowed-down address the trigger comes from the cache, but the body is still read and the signature checked: a
 * platform sends good deliveries from the same addresses as its other users' deliveries.
 */
async function receive(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const { now } = context.var;
  const id = pathParam(context, "id");
  const trigger = await deliveries(context).findHook(context.env, id, { now: now(), mayBeOld: isRefused(context) });
  if (trigger === null) {
    return await refuseStranger(context, new Refusal({ code: "not_found", message: `no trigger ${id}`, param: "id" }));
  }
  const read = readText(context.env, context.req.raw, sharerOf(context));
  const body = await read.catch((thrown: unknown) => refuseUnsigned(context, trigger, thrown));
  await keepPace(trigger.org_id, RUN_COST_MS, "hooks");
  const posted = { headers: context.req.raw.headers, body, origin: originOf(context), now: now() };
  const received = await deliveries(context).receiveDelivery(context.env, trigger, posted);
  if (!received.ok && UNSIGNED.includes(received.error.code)) {
    return await refuseUnsigned(context, trigger, new Refusal(received.error));
  }
  return context.json(unwrap(received), 202);
}

const UNSIGNED: readonly string[] = ["invalid_signature", "stale_timestamp"];

/** The sender is unknown. An address that sends too many of these is not logged. */
async function refuseUnsigned(context: ApiContext, trigger: TriggerRow, why: unknown): Promise<never> {
  if (!(why instanceof Refusal)) throw why;
  try {
    return await refuseStranger(context, why, "deliveries whose sender is unknown");
  } catch (refused) {
    if (refused === why) await deliveries(context).noteRefused(context.env, trigger, why.failure);
    throw refused;
  }
}

function originOf({ req }: ApiContext): string {
  return new URL(req.url).origin;
}

function deliveryOf(
  trigger_id: string,
  { serial, at, error, superseded_by, ...said }: LoggedDelivery,
): TriggerDelivery {
  return {
    object: "trigger_delivery",
    id: String(serial),
    trigger_id,
    ...said,
    error: error && { code: error.code, message: error.message, param: error.param },
    superseded_by: superseded_by === null ? null : String(superseded_by),
    at: seconds(at),
  };
}
