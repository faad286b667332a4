/**
 * `rollcall fleet replica …`: the engines of a fleet. Keys are read from environment variables, never from the command
 * line.
 */

import type { ReplicaPatch, ReplicaView } from "../../fleets/wire.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { CallOptions, RollcallClient } from "../../sdk/client.ts";
import { defined, urlOf, variableNamedBy } from "../argument-values.ts";
import { type CommandLine, command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { countText, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";

export const REPLICA_HEADER = ["replica", "state", "version", "in flight", "base url", "why"];

const SETTING_FLAGS = {
  "base-url": { short: "b", value: "URL", help: "base URL, up to and including /v1" },
  "api-key-var": { short: "k", value: "VAR", help: "environment variable with its key" },
  "control-url": { value: "URL", help: "URL for changing its weights, without /v1; default the base URL without /v1" },
  "control-key-var": { value: "VAR", help: "environment variable with the key for that URL; default that of -k" },
  "max-concurrent": { value: "N", help: "concurrent calls" },
} as const satisfies Flags;

const ADD = command({
  name: "fleet replica add",
  takes: "<fleet> <name>",
  help: "add an engine to a fleet and probe it",
  more: "An engine that does not answer is still added.",
  flags: { ...SETTING_FLAGS, ...PLATFORM_FLAGS },
  run(line) {
    const [fleet, name] = both(line);
    const { base_url, ...rest } = settingsOf(line);
    if (base_url === undefined) throw usageError("--base-url: is required: -b URL", "base-url");
    return replicaReply(line, (client, options) =>
      client.fleets.replicas.add(fleet, { name, base_url, ...rest }, options),
    );
  },
});

const LIST = command({
  name: "fleet replica list",
  takes: "<fleet>",
  reads: true,
  help: "list the engines of a fleet and their state",
  flags: PLATFORM_FLAGS,
  run(line) {
    const fleet = line.one("a fleet");
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await client.fleets.replicas.list(fleet, { signal });
      const none = `No replicas. Add one with: ${COMMAND} fleet replica add ${fleet} NAME -b URL`;
      const text = () => listText(page.data, { header: REPLICA_HEADER, rowOf: replicaRow, none, room });
      return { json: page, text };
    });
  },
});

const SHOW = command({
  name: "fleet replica show",
  takes: "<fleet> <replica>",
  reads: true,
  help: "show an engine: its state and what it supports",
  flags: PLATFORM_FLAGS,
  run(line) {
    const [fleet, name] = both(line);
    return replicaReply(line, (client, options) => client.fleets.replicas.get(fleet, name, options));
  },
});

const UPDATE = command({
  name: "fleet replica update",
  takes: "<fleet> <replica>",
  help: "change only the given settings",
  flags: {
    ...SETTING_FLAGS,
    "no-api-key": { help: "remove its key" },
    "no-control-url": { help: "change its weights at its base URL" },
    "no-control-key": { help: "change its weights with the key of its base URL" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const [fleet, name] = both(line);
    const patch: ReplicaPatch = {
      ...settingsOf(line),
      ...(line.on("no-api-key") && { api_key: null }),
      ...(line.on("no-control-url") && { control_url: null }),
      ...(line.on("no-control-key") && { control_key: null }),
    };
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return replicaReply(line, (client, options) => client.fleets.replicas.update(fleet, name, patch, options));
  },
});

const DRAIN = command({
  name: "fleet replica drain",
  takes: "<fleet> <replica>",
  help: "let it finish its rollouts, and send it no new ones",
  flags: { off: { help: "let it take calls again" }, ...PLATFORM_FLAGS },
  run(line) {
    const [fleet, name] = both(line);
    const patch = { draining: !line.on("off") };
    return replicaReply(line, (client, options) => client.fleets.replicas.update(fleet, name, patch, options));
  },
});

const REMOVE = command({
  name: "fleet replica remove",
  takes: "<fleet> <replica>",
  help: "remove an engine from its fleet",
  flags: PLATFORM_FLAGS,
  run(line) {
    const [fleet, name] = both(line);
    return onPlatform(line, async ({ client, signal }) => {
      const removed = await client.fleets.replicas.remove(fleet, name, { signal });
      return { json: removed, text: () => `Removed ${removed.id}` };
    });
  },
});

const PROBE = command({
  name: "fleet replica probe",
  takes: "<fleet> <replica>",
  help: "probe an engine again; exit 4 if it does not answer",
  flags: PLATFORM_FLAGS,
  run(line) {
    const [fleet, name] = both(line);
    return replicaReply(
      line,
      (client, options) => client.fleets.replicas.probe(fleet, name, options),
      ({ capabilities }) => (capabilities?.error ? EXIT.unreachable : EXIT.good),
    );
  },
});

type Ask = (client: RollcallClient, options: CallOptions) => Promise<ReplicaView>;

function replicaReply(
  line: CommandLine<keyof typeof PLATFORM_FLAGS>,
  ask: Ask,
  exit?: (found: ReplicaView) => ExitCode,
): Promise<ExitCode> {
  return onPlatform(line, async ({ client, signal }) => {
    const replica = await ask(client, { signal });
    return { json: replica, text: () => replicaText(replica), exit: exit?.(replica) };
  });
}

function both(line: CommandLine<string>): [fleet: string, replica: string] {
  const [fleet, replica, ...more] = line.positionals;
  if (fleet === undefined || replica === undefined || more.length > 0) {
    throw usageError("a fleet and a replica are required");
  }
  return [fleet, replica];
}

/** Only the settings that were given. */
function settingsOf(line: CommandLine<keyof typeof SETTING_FLAGS>) {
  return defined({
    base_url: urlOf("base-url", line.text("base-url")),
    api_key: variableNamedBy("api-key-var", line.text("api-key-var")),
    control_url: urlOf("control-url", line.text("control-url")),
    control_key: variableNamedBy("control-key-var", line.text("control-key-var")),
    max_concurrent: line.count("max-concurrent", 1),
  });
}

function replicaText(replica: ReplicaView): string {
  const { capabilities } = replica;
  return safeDetails({
    replica: replica.name,
    id: replica.id,
    state: replica.state,
    why: replica.reason,
    version: replica.version === null ? null : String(replica.version),
    "in flight": countText(replica.in_flight),
    "base url": replica.base_url,
    "control url": replica.control_url,
    key: replica.api_key_last4 && `…${replica.api_key_last4}`,
    "max concurrent": countText(replica.max_concurrent),
    engine: capabilities?.version ?? null,
    models: capabilities?.models.slice(0, 5).join(", ") || null,
    problem: capabilities?.error ?? null,
    routes: capabilities?.routes.join(" ") || null,
    created: timeText(replica.created_at),
  });
}

/** One line of the list, with the columns of REPLICA_HEADER. */
export function replicaRow({ name, state, version, in_flight, base_url, reason }: ReplicaView): string[] {
  return [name, state, version === null ? "" : String(version), countText(in_flight), base_url, reason ?? ""];
}

export const FLEET_REPLICA_COMMANDS = [ADD, LIST, SHOW, UPDATE, DRAIN, REMOVE, PROBE] as const;
