/** `rollcall trigger …`: URLs at which another service's webhook starts a run. */
import { COMMAND } from "../../local/package-root.ts";
import {
  type CreatedTrigger,
  TRIGGER_CONCURRENCY,
  TRIGGER_SCHEMES,
  type TriggerDelivery,
  type TriggerPatch,
  type TriggerRequestInput,
  type TriggerTest,
  type TriggerTestRequestInput,
  type TriggerView,
} from "../../triggers/wire.ts";
import { defined, jsonObject, jsonOrText, readText, variableNamedBy } from "../argument-values.ts";
import { type CommandLine, command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";

const HEADER = ["trigger", "scheme", "begins", "next", "concurrency", "id"];
const DELIVERY_HEADER = ["delivery", "at", "event", "state", "run", "reason"];
const USUAL = 20;

const SETTING_FLAGS = {
  file: { short: "f", value: "TRIGGER.json", help: "a request to start from; flags win over it" },
  "secret-var": { value: "VAR", help: "environment variable with the signing secret" },
  run: { value: "RUN.json", help: "the run to start: a file, or JSON" },
  map: { value: "FIELD=$.PATH", repeatable: true, help: "a field of the run, and the payload path that fills it" },
  when: {
    value: "$.PATH=VALUE",
    repeatable: true,
    help: "the required value at a payload path; a JSON list: one of these",
  },
  cron: { value: "CRON", help: "start the run by itself: five fields, as in '0 6 * * 1'; at most every 5 minutes" },
  timezone: { value: "ZONE", help: "of --cron, as in Europe/Berlin; default UTC" },
  concurrency: { value: "HOW", choices: TRIGGER_CONCURRENCY, help: "while one of its runs is running; default allow" },
} as const satisfies Flags;

type Settings = CommandLine<keyof typeof SETTING_FLAGS>;

const CREATE = command({
  name: "trigger create",
  takes: "[name]",
  help: "create an address where another platform's webhook starts runs, or a schedule that starts them",
  more: "For standard, a secret is generated and shown once, unless you set one. The run is validated now.",
  flags: {
    scheme: { value: "SCHEME", choices: TRIGGER_SCHEMES, help: "signing scheme: standard, github or huggingface" },
    ...SETTING_FLAGS,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const [name, ...others] = line.positionals;
    if (others.length > 0) throw usageError("exactly one name is required");
    const { secret, ...given } = settingsOf(line);
    const { verify, ...base } = fileOf(line);
    const known = typeof verify === "object" && verify !== null ? verify : {};
    const request = {
      ...base,
      ...defined({ name }),
      ...given,
      ...defined({ verify: verifyOf({ ...known, ...defined({ scheme: line.text("scheme"), secret }) }) }),
    };
    return onPlatform(line, async ({ client, signal }) => {
      // The API reports what is wrong with it.
      const made = await client.triggers.create(request as TriggerRequestInput, { signal });
      return { json: made, text: () => createdText(made) };
    });
  },
});

const LIST = command({
  name: "trigger list",
  reads: true,
  help: "list triggers and the runs they start",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.triggers.list({}, { signal }));
      const none = `No triggers. Create one with: ${COMMAND} trigger create NAME -f trigger.json`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const SHOW = question({
  name: "trigger show",
  takes: "<trigger>",
  reads: true,
  help: "show a trigger: its address and the run it starts",
  what: "a trigger",
  ask: (client, name, options) => client.triggers.get(name, options),
  text: triggerText,
});

const UPDATE = command({
  name: "trigger update",
  takes: "<trigger>",
  help: "change only the given settings",
  more: "If its run or secret is changed, its later runs belong to the person who made the change.",
  flags: {
    name: { value: "NAME", help: "a new name" },
    ...SETTING_FLAGS,
    "no-schedule": { help: "start no runs by itself any more" },
    disable: { help: "refuse deliveries from now on, and pause the schedule" },
    enable: { help: "accept deliveries again" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const trigger = line.one("a trigger");
    if (line.on("disable") && line.on("enable"))
      throw usageError("--enable: cannot be combined with --disable", "enable");
    const { verify: _, ...base } = fileOf(line);
    const settings = settingsOf(line);
    if (line.on("no-schedule") && settings.schedule !== undefined) {
      throw usageError("--no-schedule: cannot be combined with --cron", "no-schedule");
    }
    const patch = {
      ...base,
      ...defined({ name: line.text("name") }),
      ...settings,
      ...(line.on("no-schedule") && { schedule: null }),
      ...(line.on("disable") && { disabled: true }),
      ...(line.on("enable") && { disabled: false }),
    };
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal }) => {
      const changed = await client.triggers.update(trigger, patch as TriggerPatch, { signal });
      return { json: changed, text: () => triggerText(changed) };
    });
  },
});

const DELIVERIES = command({
  name: "trigger deliveries",
  takes: "<trigger>",
  reads: true,
  help: "list its deliveries and their results, newest first",
  flags: { limit: { value: "N", help: "deliveries to show; default 20" }, ...PLATFORM_FLAGS },
  run(line) {
    const trigger = line.one("a trigger");
    const limit = line.count("limit", 1) ?? USUAL;
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const query = { limit: Math.min(100, limit + 1) };
      const page = await gather(client.triggers.deliveries.list(trigger, query, { signal }), limit);
      const more = page.has_more ? "\n\nThere are more: --limit N" : "";
      const none = "No deliveries yet.";
      const table = { header: DELIVERY_HEADER, rowOf: deliveryRow, none, room };
      return { json: page, text: () => listText(page.data, table) + more };
    });
  },
});

const TEST = command({
  name: "trigger test",
  takes: "<trigger>",
  help: "try a payload without starting a run; exit 1 if it would start none",
  flags: {
    payload: { value: "FILE", help: "the payload: a file, or JSON" },
    header: {
      value: "NAME=VALUE",
      repeatable: true,
      help: "a header of the delivery; with headers the signature is checked",
    },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const trigger = line.one("a trigger");
    const given = line.text("payload");
    if (given === undefined) throw usageError("--payload: is required", "payload");
    const text = given.trimStart().startsWith("{") ? given : readText(given, "payload");
    const headers = line.pairs("header");
    const signed = Object.keys(headers).length > 0;
    // Sent as text: a number in it may have more digits than JSON parsers keep.
    const request: TriggerTestRequestInput = { body: text, ...(signed && { headers }) };
    return onPlatform(line, async ({ client, signal }) => {
      const found = await client.triggers.test(trigger, request, { signal });
      return { json: found, text: () => testText(found), exit: found.would === "begin" ? EXIT.good : EXIT.bad };
    });
  },
});

const DELETE = question({
  name: "trigger delete",
  takes: "<trigger>",
  help: "delete a trigger and its log; runs that it began go on",
  what: "a trigger",
  ask: (client, name, options) => client.triggers.delete(name, options),
  text: ({ id }) => `Deleted ${id}`,
});

function fileOf(line: Settings): Readonly<Record<string, unknown>> {
  const file = line.text("file");
  return file === undefined ? {} : jsonObject(readText(file, "file"), "file", file);
}

/** Undefined if nothing of it was given: the API has a default. */
function verifyOf(verify: object): object | undefined {
  return Object.keys(verify).length === 0 ? undefined : verify;
}

/** Only the settings that were given. */
function settingsOf(line: Settings) {
  const run = line.text("run");
  const text = run === undefined || run.trimStart().startsWith("{") ? run : readText(run, "run");
  const [map, when] = [line.pairs("map"), line.pairs("when")];
  const wanted = Object.entries(when).map(([path, value]) => [path, jsonOrText(value, "when", `${path}: `)]);
  return defined({
    secret: variableNamedBy("secret-var", line.text("secret-var")),
    run: text === undefined ? undefined : jsonObject(text, "run"),
    map: Object.keys(map).length > 0 ? map : undefined,
    when: wanted.length > 0 ? (Object.fromEntries(wanted) as Record<string, unknown>) : undefined,
    concurrency: line.text("concurrency"),
    schedule: scheduleOf(line),
  });
}

function scheduleOf(line: Settings): { readonly cron: string; readonly timezone?: string } | undefined {
  const [cron, timezone] = [line.text("cron"), line.text("timezone")];
  if (cron !== undefined) return { cron, ...defined({ timezone }) };
  if (timezone !== undefined) throw usageError("--timezone: needs --cron", "timezone");
  return undefined;
}

function createdText(made: CreatedTrigger): string {
  const shown = triggerText(made);
  return made.secret === null ? shown : `${shown}\n\nIts secret, shown once: ${made.secret}`;
}

function triggerText(trigger: TriggerView): string {
  const { name, id, url, verify, run, map, when, concurrency, schedule, next_at, disabled, created_by, created_at } =
    trigger;
  return safeDetails({
    ...{ trigger: name, id, url, scheme: verify.scheme },
    ...{ begins: JSON.stringify(run), map: jsonText(map), when: jsonText(when), concurrency },
    schedule: schedule === null ? null : `${schedule.cron} (${schedule.timezone})`,
    next: next_at === null ? null : timeText(next_at),
    ...{ disabled: disabled ? "yes" : null, "runs of": created_by, created: timeText(created_at) },
  });
}

function jsonText(value: object): string | null {
  return Object.keys(value).length === 0 ? null : JSON.stringify(value);
}

function rowOf({ name, verify, run, concurrency, next_at, disabled, id }: TriggerView): string[] {
  const begins = `${String(run["kind"] ?? "eval")} of ${String(run["environment"] ?? "set by the payload")}`;
  return [
    name,
    verify.scheme,
    disabled ? "nothing: disabled" : begins,
    next_at === null ? "" : timeText(next_at),
    concurrency,
    id,
  ];
}

function deliveryRow({ id, at, event, state, run_id, error, superseded_by, more }: TriggerDelivery): string[] {
  const reason = error?.message ?? (superseded_by === null ? "" : `by ${superseded_by}`);
  return [id, timeText(at), event ?? "", state, run_id ?? "", more > 0 ? `${reason} (and ${more} more)` : reason];
}

function testText({ verified, would, when, request, errors }: TriggerTest): string {
  return safeDetails({
    would,
    signed: verified === null ? null : String(verified),
    when: when.map(({ path, holds, found }) => `${path} is ${JSON.stringify(found)}: ${holds}`).join("; ") || null,
    run: request && JSON.stringify(request),
    problem: errors.map(({ message }) => message).join("; ") || null,
  });
}

export const TRIGGER_COMMANDS = [CREATE, LIST, SHOW, UPDATE, DELIVERIES, TEST, DELETE] as const;
