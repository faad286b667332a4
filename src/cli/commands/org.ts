/** `rollcall org …`: the organisation of the key; for an operator, all organisations of a deployment. */

import type { ListedOrganization, OrganizationView } from "../../accounts/wire.ts";
import type { OrganizationLimits } from "../../contract/identity.ts";
import { BILLING_MODES } from "../../contract/money.ts";
import { COMMAND } from "../../local/package-root.ts";
import { defined } from "../argument-values.ts";
import { type CommandLine, command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform } from "../on-platform.ts";
import { countText, namedCounts, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";
import { deletionText } from "./deletion.ts";
import { newKeyReply } from "./key.ts";
import { creditText, microsOf } from "./ledger.ts";

const HEADER = ["organisation", "id", "requests a minute", "runs", "rollouts", "created"];

const LIMIT_FLAGS = {
  "requests-per-minute": { value: "N|none", help: "requests a minute of all its keys together" },
  "runs-in-flight": { value: "N|none", help: "runs in flight" },
  "concurrent-rollouts": { value: "N|none", help: "concurrent rollouts" },
  "storage-bytes": { value: "N|none", help: "of all its stored data" },
  "uploads-at-once": { value: "N|none", help: "concurrent dataset uploads" },
} as const satisfies Flags;

const SHOW = command({
  name: "org show",
  reads: true,
  help: "show the organisation of the key, and its limits",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal }) => {
      const organization = await client.organization.get({ signal });
      return { json: organization, text: () => organizationText(organization) };
    });
  },
});

const UPDATE = command({
  name: "org update",
  help: "change the name, or the hosts that endpoints and environments may call",
  flags: {
    name: { value: "TEXT", help: "a new name" },
    "allow-host": {
      value: "HOST",
      repeatable: true,
      help: "replace the list; a leading *. includes all subdomains",
    },
    "any-host": { help: "any host that the platform allows" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    line.none();
    const hosts = line.all("allow-host");
    if (hosts.length > 0 && line.on("any-host"))
      throw usageError("--any-host: cannot be combined with --allow-host", "any-host");
    const patch = {
      ...defined({ name: line.text("name") }),
      ...(hosts.length > 0 && { allowed_hosts: [...hosts] }),
      ...(line.on("any-host") && { allowed_hosts: null }),
    };
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal }) => {
      const organization = await client.organization.update(patch, { signal });
      return { json: organization, text: () => organizationText(organization) };
    });
  },
});

const CREATE = command({
  name: "org create",
  takes: "<name>",
  help: "for operators: create an organisation, and print its first key, once",
  flags: {
    "first-project": { value: "NAME", help: "its first project; default: default" },
    ...LIMIT_FLAGS,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const name = line.one("the organisation");
    const request = { name, ...defined({ project: line.text("first-project") }), limits: limitsOf(line) };
    return onPlatform(line, async (session) => {
      const made = await session.client.organizations.create(request, { signal: session.signal });
      session.term.log(`${made.name} is ${made.id}, with the project ${made.project.name}.`);
      return newKeyReply(made, made.key.key, session);
    });
  },
});

const LIST = command({
  name: "org list",
  reads: true,
  help: "for operators: list every organisation of the deployment",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.organizations.list({ limit: 100 }, { signal }));
      const none = `No organisations. Create one with: ${COMMAND} org create NAME`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const LIMITS = command({
  name: "org limits",
  takes: "<organisation>",
  help: "for operators: change the given limits; none removes a limit",
  flags: { ...LIMIT_FLAGS, ...PLATFORM_FLAGS },
  run(line) {
    const id = line.one("the id of an organisation");
    const limits = limitsOf(line);
    if (Object.keys(limits).length === 0) throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal }) => {
      const organization = await client.organizations.update(id, { limits }, { signal });
      return { json: organization, text: () => organizationText(organization) };
    });
  },
});

const SET = command({
  name: "org set",
  takes: "<organisation>",
  help: "for operators: set whether and how an organisation is charged",
  more: `Started runs are not affected. prepaid: up to the balance; postpaid: until it is --credit-limit below 0.`,
  flags: {
    billing: { value: "MODE", choices: BILLING_MODES, help: "the billing mode" },
    "credit-limit": { value: "DOLLARS|none", help: "how far a postpaid balance may fall below 0" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("the id of an organisation");
    const billing = BILLING_MODES.find((one) => one === line.text("billing"));
    const credit = line.text("credit-limit");
    const patch = {
      ...defined({ billing }),
      ...(credit !== undefined && { credit_limit_micros: credit === "none" ? null : microsOf(line, "credit-limit") }),
    };
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal }) => {
      const organization = await client.organizations.update(id, patch, { signal });
      return { json: organization, text: () => organizationText(organization) };
    });
  },
});

const EXPORT = command({
  name: "org export",
  takes: "<folder>",
  argument: "file",
  reads: true,
  help: "export all data of the organisation as files",
  more: `Needs a key with the scope admin: of the whole organisation for all projects, or of one project for that project.
If interrupted, run the same command again to continue. manifest.json is written last, with a digest of every file.
Batches of training runs are left out.`,
  flags: PLATFORM_FLAGS,
  run(line) {
    const folder = line.one("a folder");
    const goOn = () => `; written files stay; continue with: ${COMMAND} org export ${folder}`;
    return onPlatform(
      line,
      async (session) => {
        const { exportOrganization } = await import("../export/organization.ts");
        const { files, ...manifest } = await exportOrganization(session, folder);
        const { runs, rollouts, datasets, projects } = manifest.counts;
        const parts = { projects, runs, rollouts, datasets };
        return { json: { ...manifest, folder, files: files.length }, text: () => `${namedCounts(parts)} in ${folder}` };
      },
      goOn,
    );
  },
});

const DELETE = command({
  name: "org delete",
  help: "delete the organisation of the key with everything in it, for good",
  more: `All its keys are refused from then on, including the calling one. The deletion continues by itself; the operator
of the deployment can read its progress.`,
  flags: { confirm: { value: "NAME", help: "the organisation's name, as confirmation" }, ...PLATFORM_FLAGS },
  run(line) {
    line.none();
    const name = line.text("confirm");
    if (name === undefined)
      throw usageError("--confirm: is required, with the organisation's name: --confirm NAME", "confirm");
    return onPlatform(line, async ({ client, signal }) => {
      const deletion = await client.organization.delete(name, { signal });
      return { json: deletion, text: () => deletionText(deletion) };
    });
  },
});

type Limits = { -readonly [Name in keyof OrganizationLimits]?: OrganizationLimits[Name] };

/** The limits that were given; null removes one. */
function limitsOf(line: CommandLine<keyof typeof LIMIT_FLAGS>): Limits {
  return defined({
    requests_per_minute: limitOf(line, "requests-per-minute"),
    runs_in_flight: limitOf(line, "runs-in-flight"),
    concurrent_rollouts: limitOf(line, "concurrent-rollouts"),
    storage_bytes: limitOf(line, "storage-bytes"),
    uploads_at_once: limitOf(line, "uploads-at-once"),
  });
}

function limitOf(line: CommandLine<keyof typeof LIMIT_FLAGS>, flag: keyof typeof LIMIT_FLAGS) {
  return line.text(flag) === "none" ? null : line.count(flag, 0);
}

function organizationText(organization: OrganizationView | ListedOrganization): string {
  const { limits } = organization;
  const hosts = "allowed_hosts" in organization ? (organization.allowed_hosts?.join(", ") ?? "any") : null;
  return safeDetails({
    organisation: organization.name,
    id: organization.id,
    "requests a minute": limitText(limits.requests_per_minute),
    "runs in flight": limitText(limits.runs_in_flight),
    "concurrent rollouts": limitText(limits.concurrent_rollouts),
    "storage bytes": limitText(limits.storage_bytes),
    "uploads at once": limitText(limits.uploads_at_once),
    "hosts it may call": hosts,
    billing: organization.billing,
    "credit limit": organization.billing === "postpaid" ? creditText(organization.credit_limit_micros) : null,
    created: timeText(organization.created_at),
  });
}

function rowOf({ name, id, limits, created_at }: ListedOrganization): string[] {
  const { requests_per_minute, runs_in_flight, concurrent_rollouts } = limits;
  return [name, id, ...[requests_per_minute, runs_in_flight, concurrent_rollouts].map(limitText), timeText(created_at)];
}

function limitText(limit: number | null): string {
  return limit === null ? "no limit" : countText(limit);
}

export const ORG_COMMANDS = [SHOW, UPDATE, CREATE, LIST, LIMITS, SET, EXPORT, DELETE] as const;
