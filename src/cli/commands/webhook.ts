/** `rollcall webhook …`: endpoints that receive events, and their deliveries. */
import { COMMAND } from "../../local/package-root.ts";
import {
  DELIVERY_STATES,
  type WebhookDelivery,
  type WebhookRequestInput,
  type WebhookView,
} from "../../webhooks/wire.ts";
import { defined, urlOf } from "../argument-values.ts";
import { type CommandLine, command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question, type Reply, type Session } from "../on-platform.ts";
import { timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";

const HEADER = ["webhook", "url", "events", "waiting", "state"];
const DELIVERY_HEADER = ["delivery", "type", "state", "tries", "answer", "created"];
const A_WEBHOOK = "the id of a webhook endpoint";
const DAY_S = 86_400;

const SETTING_FLAGS = {
  event: { value: "NAME", repeatable: true, help: "an event to deliver, or a family such as run.*" },
  description: { value: "TEXT", help: "a description" },
} as const satisfies Flags;

const CREATE = command({
  name: "webhook create",
  takes: "<url>",
  help: "create a webhook endpoint; its secret is shown once",
  more: "Without --event it receives all events of the project. Requests are signed as Standard Webhooks specifies.",
  flags: { ...SETTING_FLAGS, ...PLATFORM_FLAGS },
  run(line) {
    const url = urlOf("url", line.one("the address")) ?? "";
    const request = { url, ...settingsOf(line) };
    return onPlatform(line, async (session) => {
      const made = await session.client.webhookEndpoints.create(request, { signal: session.signal });
      session.term.log(`${made.id} receives ${eventsText(made)}.`);
      return secretReply(made, made.secret, session);
    });
  },
});

const LIST = command({
  name: "webhook list",
  reads: true,
  help: "list webhook endpoints",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.webhookEndpoints.list({ limit: 100 }, { signal }));
      const none = `No webhook endpoints. Create one with: ${COMMAND} webhook create URL`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const SHOW = question({
  name: "webhook show",
  takes: "<webhook>",
  reads: true,
  help: "show a webhook endpoint and its pending deliveries",
  what: A_WEBHOOK,
  ask: (client, id, options) => client.webhookEndpoints.get(id, options),
  text: webhookText,
});

const UPDATE = command({
  name: "webhook update",
  takes: "<webhook>",
  help: "change only the given settings; --enable after it was disabled",
  flags: {
    url: { value: "URL", help: "another address" },
    ...SETTING_FLAGS,
    "all-events": { help: "deliver all events of the project" },
    enable: { help: "deliver again; replay given-up deliveries with webhook replay" },
    disable: { help: "deliver nothing" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one(A_WEBHOOK);
    if (line.on("enable") && line.on("disable"))
      throw usageError("--disable: cannot be combined with --enable", "disable");
    if (line.on("all-events") && line.all("event").length > 0) {
      throw usageError("--all-events: cannot be combined with --event", "all-events");
    }
    const patch = {
      ...defined({ url: urlOf("url", line.text("url")) }),
      ...settingsOf(line),
      ...(line.on("all-events") && { events: null }),
      ...((line.on("enable") || line.on("disable")) && { disabled: line.on("disable") }),
    };
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal }) => {
      const webhook = await client.webhookEndpoints.update(id, patch, { signal });
      return { json: webhook, text: () => webhookText(webhook) };
    });
  },
});

const DELETE = question({
  name: "webhook delete",
  takes: "<webhook>",
  help: "delete an address, with what waits for it and its log",
  what: A_WEBHOOK,
  ask: (client, id, options) => client.webhookEndpoints.delete(id, options),
  text: ({ id }) => `Deleted ${id}`,
});

const ROTATE = command({
  name: "webhook rotate-secret",
  takes: "<webhook>",
  help: "create a new secret; the old one also signs for a while",
  flags: {
    overlap: { value: "S", help: "seconds that the old secret still signs; default a day" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one(A_WEBHOOK);
    const request = defined({ overlap_s: line.count("overlap", 0) });
    return onPlatform(line, async (session) => {
      const made = await session.client.webhookEndpoints.rotateSecret(id, request, { signal: session.signal });
      return secretReply(made, made.secret, session);
    });
  },
});

const DELIVERIES = command({
  name: "webhook deliveries",
  takes: "<webhook>",
  reads: true,
  help: "list its deliveries, newest first",
  flags: {
    state: { value: "STATE", help: DELIVERY_STATES.join(", ") },
    limit: { value: "N", help: "maximum number; default 50" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one(A_WEBHOOK);
    const named = line.text("state");
    const state = DELIVERY_STATES.find((one) => one === named);
    if (named !== undefined && state === undefined) {
      throw usageError(`--state: ${named} is not one of ${DELIVERY_STATES.join(", ")}`, "state");
    }
    const limit = line.count("limit", 1) ?? 50;
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const query = { ...defined({ state }), limit: Math.min(limit, 100) };
      const page = await gather(client.webhookEndpoints.deliveries.list(id, query, { signal }), limit);
      const none = `No deliveries. Send a test with: ${COMMAND} webhook test WEBHOOK`;
      return {
        json: page,
        text: () => listText(page.data, { header: DELIVERY_HEADER, rowOf: deliveryRow, none, room }),
      };
    });
  },
});

const REPLAY = command({
  name: "webhook replay",
  takes: "<webhook>",
  help: "replay deliveries that were given up, or one delivery",
  more: "Without --delivery: those given up in the last day, or in the last --since seconds.",
  flags: {
    delivery: { value: "MSG", help: "this delivery, whatever its state" },
    since: { value: "S", help: "deliveries that ended in the last N seconds; default a day" },
    delivered: { help: "successful deliveries, too" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one(A_WEBHOOK);
    const delivery = line.text("delivery");
    if (delivery !== undefined && (line.on("delivered") || line.text("since") !== undefined)) {
      throw usageError("--delivery: cannot be combined with --since or --delivered", "delivery");
    }
    const after = Math.max(0, Math.floor(Date.now() / 1000) - (line.count("since", 1) ?? DAY_S));
    const states = line.on("delivered") ? (["failed", "delivered"] as const) : (["failed"] as const);
    return onPlatform(line, async ({ client, signal }) => {
      if (delivery === undefined) {
        const replay = await client.webhookEndpoints.replay(id, { after, states: [...states] }, { signal });
        return { json: replay, text: () => `Replaying ${replay.replayed} deliveries` };
      }
      const one = await client.webhookEndpoints.deliveries.replay(id, delivery, { signal });
      return { json: one, text: () => deliveryText(one) };
    });
  },
});

const TEST = question({
  name: "webhook test",
  takes: "<webhook>",
  help: "send a webhook.test event; webhook deliveries shows the result",
  what: A_WEBHOOK,
  ask: (client, id, options) => client.webhookEndpoints.test(id, options),
  text: deliveryText,
});

function settingsOf(line: CommandLine<keyof typeof SETTING_FLAGS>) {
  const events = line.all("event");
  const named = events.length === 0 ? undefined : (events as WebhookRequestInput["events"]);
  return defined({ events: named, description: line.text("description") });
}

/** Prints the secret alone on stdout, so that a program can read it; with --json the whole answer. */
function secretReply(made: object, secret: string | null, { term }: Session): Reply {
  if (secret === null) term.log("It was created by an earlier attempt, and its secret was lost: rotate it.");
  else term.log("Save the secret now: it is not shown again.");
  return { json: made, ...(secret !== null && { text: () => secret }) };
}

function rowOf(webhook: WebhookView): string[] {
  const { id, url, backlog } = webhook;
  return [id, url, eventsText(webhook), String(backlog.pending), stateOf(webhook)];
}

function stateOf({ disabled_at, backlog }: WebhookView): string {
  if (disabled_at !== null) return "disabled";
  return backlog.failures_in_a_row > 0 ? "failing" : "enabled";
}

function eventsText({ events }: Pick<WebhookView, "events">): string {
  return events === null ? "all events" : events.join(", ");
}

function webhookText(webhook: WebhookView): string {
  const { id, url, description, disabled_reason, secrets, backlog, created_at } = webhook;
  return safeDetails({
    webhook: id,
    url,
    description: description || null,
    events: eventsText(webhook),
    state: stateOf(webhook),
    reason: disabled_reason,
    secrets: String(secrets.length),
    waiting: String(backlog.pending),
    "given up": String(backlog.failed),
    dropped: String(backlog.dropped),
    "paused until": backlog.resting_until === null ? null : timeText(backlog.resting_until),
    created: timeText(created_at),
  });
}

function deliveryRow(delivery: WebhookDelivery): string[] {
  const { id, type, state, attempts, created_at } = delivery;
  return [id, type, state, String(attempts), answerOf(delivery), timeText(created_at)];
}

function answerOf({ status, error }: WebhookDelivery): string {
  return error ?? (status === null ? "" : String(status));
}

function deliveryText(delivery: WebhookDelivery): string {
  const { id, type, subject, state, attempts, answer, next_attempt_at } = delivery;
  return safeDetails({
    ...{ delivery: id, type, subject, state, tries: String(attempts) },
    answer: answerOf(delivery) || null,
    said: answer,
    "next try": next_attempt_at === null ? null : timeText(next_attempt_at),
  });
}

export const WEBHOOK_COMMANDS = [
  ...[CREATE, LIST, SHOW, UPDATE, DELETE],
  ...[ROTATE, DELIVERIES, REPLAY, TEST],
] as const;
