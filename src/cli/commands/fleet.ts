/** `rollcall fleet …`: fleets of engines, and how weights are sent to them. fleet-replica.ts has their replicas. */

import { LOCATION_HINTS, UPDATE_MODES } from "../../contract/fleet.ts";
import type { FleetPatch, FleetView } from "../../fleets/wire.ts";
import { COMMAND } from "../../local/package-root.ts";
import { defined } from "../argument-values.ts";
import { type CommandLine, command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { countText, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";
import { REPLICA_HEADER, replicaRow } from "./fleet-replica.ts";
import { pricesOf } from "./prices-of.ts";

const PAUSES = ["wait", "keep", "abort"] as const;
const HEADER = ["fleet", "update", "ready", "at once", "id"];

/** The settings of a fleet that can be given when it is created and changed later. */
const SETTING_FLAGS = {
  mode: { value: "MODE", choices: UPDATE_MODES, help: "how weights get onto its engines" },
  adapter: { value: "NAME", help: "for LoRA: the adapter's name, before the @ of its version" },
  pause: { value: "HOW", choices: PAUSES, help: "what happens to calls in flight" },
  "pause-s": { value: "S", help: "time limit of a pause, in seconds" },
  "update-s": { value: "S", help: "time limit of a load, in seconds" },
  "resume-s": { value: "S", help: "time limit of a resume, in seconds" },
  location: { value: "HINT", choices: LOCATION_HINTS, help: "location of its runs' objects" },
  "input-price": { value: "X", help: "dollars per million prompt tokens; with --output-price" },
  "output-price": { value: "X", help: "dollars per million completion tokens; with --input-price" },
} as const satisfies Flags;

const CREATE = command({
  name: "fleet create",
  takes: "<name>",
  help: "create a fleet, without replicas",
  flags: { ...SETTING_FLAGS, ...PLATFORM_FLAGS },
  run(line) {
    const request = { name: line.one("the fleet"), ...settingsOf(line) };
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const fleet = await client.fleets.create(request, { signal });
      return { json: fleet, text: () => fleetText(fleet, room) };
    });
  },
});

const LIST = command({
  name: "fleet list",
  reads: true,
  help: "list fleets",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.fleets.list({}, { signal }));
      const none = `No fleets. Create one with: ${COMMAND} fleet create NAME`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const SHOW = question({
  name: "fleet show",
  takes: "<fleet>",
  reads: true,
  help: "show a fleet, its weights and the state of each replica",
  what: "a fleet",
  ask: (client, name, options) => client.fleets.get(name, options),
  text: (fleet, { room }) => fleetText(fleet, room),
});

const UPDATE = command({
  name: "fleet update",
  takes: "<fleet>",
  help: "change only the given settings",
  flags: {
    name: { value: "NAME", help: "a new name" },
    ...SETTING_FLAGS,
    "no-location": { help: "remove its location" },
    "no-prices": { help: "remove its prices" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const fleetName = line.one("the fleet");
    const { update, ...rest } = settingsOf(line);
    const plain = {
      ...defined({ name: line.text("name") }),
      ...rest,
      ...(line.on("no-location") && { location_hint: null }),
      ...(line.on("no-prices") && { prices: null }),
    };
    if (update === undefined && Object.keys(plain).length === 0)
      throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      // The API takes all of `update` or none of it.
      const before = update === undefined ? undefined : (await client.fleets.get(fleetName, { signal })).update;
      const patch = { ...plain, ...(before !== undefined && { update: { ...before, ...update } }) } as FleetPatch;
      const fleet = await client.fleets.update(fleetName, patch, { signal });
      return { json: fleet, text: () => fleetText(fleet, room) };
    });
  },
});

const DELETE = question({
  name: "fleet delete",
  takes: "<fleet>",
  help: "delete a fleet no unfinished run needs, with its replicas",
  what: "a fleet",
  ask: (client, name, options) => client.fleets.delete(name, options),
  text: ({ id }) => `Deleted ${id}`,
});

/** Only the settings that were given. */
function settingsOf(line: CommandLine<keyof typeof SETTING_FLAGS>) {
  const update = defined({
    mode: oneOf(line, "mode", UPDATE_MODES),
    adapter: line.text("adapter"),
    pause: oneOf(line, "pause", PAUSES),
    pause_s: line.number("pause-s"),
    update_s: line.number("update-s"),
    resume_s: line.number("resume-s"),
  });
  return defined({
    update: Object.keys(update).length === 0 ? undefined : update,
    location_hint: oneOf(line, "location", LOCATION_HINTS),
    prices: pricesOf(line),
  });
}

function oneOf<const Value extends string>(
  line: CommandLine<keyof typeof SETTING_FLAGS>,
  flag: "mode" | "pause" | "location",
  values: readonly Value[],
): Value | undefined {
  const text = line.text(flag);
  const found = values.find((value) => value === text);
  if (text === undefined || found !== undefined) return found;
  throw usageError(`--${flag}: ${text} is not one of ${values.join(", ")}`, flag);
}

function fleetText(fleet: FleetView, room: number): string {
  const { update, weights } = fleet;
  const details = safeDetails({
    fleet: fleet.name,
    id: fleet.id,
    update: update.mode,
    pause: `${update.pause}, ${update.pause_s} s; load ${update.update_s} s; resume ${update.resume_s} s`,
    "at once": countText(fleet.max_concurrent),
    weights: weights && `version ${weights.version} of ${weights.run_id}`,
    location: fleet.location_hint,
    created: timeText(fleet.created_at),
  });
  const none = `No replicas. Add one with: ${COMMAND} fleet replica add ${fleet.name} NAME -b URL`;
  return `${details}\n\n${listText(fleet.replicas, { header: REPLICA_HEADER, rowOf: replicaRow, none, room })}`;
}

function rowOf(fleet: FleetView): string[] {
  const ready = fleet.replicas.filter(({ state }) => state === "ready").length;
  const { name, update, replicas, max_concurrent, id } = fleet;
  return [name, update.mode, `${ready} of ${replicas.length}`, countText(max_concurrent), id];
}

export const FLEET_COMMANDS = [CREATE, LIST, SHOW, UPDATE, DELETE] as const;
