/** `rollcall key …`: keys of an organisation. A new key is printed only by the command that creates it. */

import type { ApiKeyView } from "../../accounts/wire.ts";
import { PERMISSIONS, type Permission } from "../../contract/identity.ts";
import { COMMAND } from "../../local/package-root.ts";
import { defined } from "../argument-values.ts";
import { type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question, type Reply, type Session } from "../on-platform.ts";
import { countText, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";
import { projectNamed } from "../which-platform.ts";

const HEADER = ["key", "name", "is", "may", "project", "state", "created"];
const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

const SCOPE_FLAG = { value: "SCOPE", repeatable: true, choices: PERMISSIONS, help: "a scope of the key" } as const;
const RPM_FLAG = { value: "N", help: "requests a minute of this key" } as const;

const LIST = command({
  name: "key list",
  reads: true,
  help: "list keys, including expired and revoked ones",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.keys.list({ limit: 100 }, { signal }));
      const none = `No keys. Create one with: ${COMMAND} key create NAME --scope runs:write`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const CREATE = command({
  name: "key create",
  takes: "<name>",
  help: "create a key, and print it, once",
  more: `Only the key goes to stdout. It is for the project of --project, ROLLCALL_PROJECT or the profile, else for that of
the creating key; with --organization for all projects.`,
  flags: {
    scope: SCOPE_FLAG,
    ...PLATFORM_FLAGS,
    project: { value: "NAME", help: "the only project it may access" },
    organization: { help: "for all projects of the organisation" },
    "expires-in": { value: "TIME", help: "90d, 12h, 30m; default never" },
    rpm: RPM_FLAG,
  },
  run(line) {
    const name = line.one("the key");
    const scopes = scopesOf(line);
    if (scopes.length === 0) throw usageError("--scope: is required: --scope runs:write", "scope");
    const organization = line.on("organization");
    if (organization && line.text("project") !== undefined) {
      throw usageError("--organization: cannot be combined with --project", "organization");
    }
    const lifetime = secondsOf("expires-in", line.text("expires-in"));
    const rpm = defined({ requests_per_minute: line.count("rpm", 1) });
    return onPlatform(line, async (session) => {
      const project = organization ? null : await projectOfNewKey(line, session);
      const expires_at = lifetime === undefined ? null : Math.floor(Date.now() / 1000) + lifetime;
      const request = { name, scopes, project, expires_at, ...rpm };
      const made = await session.client.keys.create(request, { signal: session.signal });
      session.term.log(`${made.id} is for ${project === null ? "the whole organisation" : `the project ${project}`}.`);
      return newKeyReply(made, made.key, session);
    });
  },
});

async function projectOfNewKey(line: CommandLine<"project">, { client, project, signal }: Session): Promise<string> {
  const named = projectNamed({ project: line.text("project") }) ?? project;
  if (named !== undefined) return named;
  const { project: own } = await client.whoAmI({ signal });
  if (own !== null) return own.id;
  throw usageError("--project: is required, or --organization for all projects", "project");
}

/** Prints the key alone on stdout, so that a program can read it; with --json the whole answer. */
export function newKeyReply(made: object, key: string | null, { term }: Session): Reply {
  if (key === null) term.log("It was created by an earlier attempt, and its key was lost: rotate it.");
  else term.log("Save the key now: it is not shown again.");
  return { json: made, ...(key !== null && { text: () => key }) };
}

const SHOW = question({
  name: "key show",
  takes: "<key>",
  reads: true,
  help: "show a key: its scopes, reach and expiry",
  what: "the id of a key",
  ask: (client, id, options) => client.keys.get(id, options),
  text: keyText,
});

const UPDATE = command({
  name: "key update",
  takes: "<key>",
  help: "change only the given settings; takes effect within 5 seconds",
  flags: {
    name: { value: "TEXT", help: "a new name" },
    scope: { ...SCOPE_FLAG, help: "replace its scopes" },
    rpm: RPM_FLAG,
    "no-rpm": { help: "only the organisation's limit" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("the id of a key");
    if (line.on("no-rpm") && line.text("rpm") !== undefined)
      throw usageError("--no-rpm: cannot be combined with --rpm", "no-rpm");
    const scopes = scopesOf(line);
    const patch = {
      ...defined({ name: line.text("name"), requests_per_minute: line.count("rpm", 1) }),
      ...(scopes.length > 0 && { scopes }),
      ...(line.on("no-rpm") && { requests_per_minute: null }),
    };
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal }) => {
      const key = await client.keys.update(id, patch, { signal });
      return { json: key, text: () => keyText(key) };
    });
  },
});

const ROTATE = command({
  name: "key rotate",
  takes: "<key>",
  help: "replace a key, and print the new one, once",
  more: "The old key still works for the overlap. Only the new key goes to stdout.",
  flags: { overlap: { value: "TIME", help: "such as 1h, 30m or 0s, at most 7d; default 1h" }, ...PLATFORM_FLAGS },
  run(line) {
    const id = line.one("the id of a key");
    const request = defined({ overlap_s: secondsOf("overlap", line.text("overlap")) });
    return onPlatform(line, async (session) => {
      const made = await session.client.keys.rotate(id, request, { signal: session.signal });
      session.term.log(`${made.id} replaces ${id}.`);
      return newKeyReply(made, made.key, session);
    });
  },
});

const REVOKE = question({
  name: "key revoke",
  takes: "<key>",
  help: "revoke a key: it is refused within 5 seconds",
  what: "the id of a key",
  ask: (client, id, options) => client.keys.revoke(id, options),
  text: ({ id, name }) => `${id} (${name}) is revoked`,
});

function scopesOf(line: CommandLine<"scope">): Permission[] {
  const named = line.all("scope");
  return PERMISSIONS.filter((permission) => named.includes(permission));
}

/** Seconds of a text such as "90d". */
function secondsOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count = "", unit] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const known = Object.entries(SECONDS).find(([name]) => name === unit);
  if (known !== undefined) return Number(count) * known[1];
  throw usageError(`--${flag}: ${text} is not a time such as 90d, 12h, 30m or 0s`, flag);
}

function keyText(key: ApiKeyView): string {
  return safeDetails({
    key: key.id,
    name: key.name,
    is: `${key.prefix}…${key.last4}`,
    may: key.scopes.join(", "),
    project: key.project_id ?? "any",
    person: key.person_id,
    "requests a minute": key.requests_per_minute === null ? null : countText(key.requests_per_minute),
    state: stateOf(key),
    "replaced by": key.rotated_to,
    "created by": key.created_by,
    created: timeText(key.created_at),
  });
}

function rowOf(key: ApiKeyView): string[] {
  const { id, name, prefix, last4, scopes, project_id, created_at } = key;
  return [id, name, `${prefix}…${last4}`, scopes.join(" "), project_id ?? "any", stateOf(key), timeText(created_at)];
}

function stateOf({ revoked_at, expires_at }: ApiKeyView): string {
  if (revoked_at !== null) return `revoked ${timeText(revoked_at)}`;
  if (expires_at === null) return "works";
  return `${expires_at * 1000 > Date.now() ? "valid until" : "expired"} ${timeText(expires_at)}`;
}

export const KEY_COMMANDS = [LIST, CREATE, SHOW, UPDATE, ROTATE, REVOKE] as const;
