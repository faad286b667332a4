/**
 * What slices do inside the kernel, which knows none of them by name: each registers its hooks before anything is served
 * (src/slices.ts).
 */
import type { JsonObject } from "../../contract/json.ts";
import type { Scope } from "../../contract/scope.ts";
import type { SegmentMessage } from "../messages/wire.ts";
import { type FleetHooks, NO_FLEETS } from "./fleet-hooks.ts";
import { Subrequests } from "./subrequests.ts";

/** Something that happened, on its way to whoever wants to know. */
export interface OutboundEvent {
  /** `evt_…`, derived from what happened, so that the same event told twice has the same one. Letters, digits and `_`. */
  readonly id: string;
  /** `run.completed`, `batch.ready`, `replica.down`, … */
  readonly type: string;
  readonly at: number;
  /** Events of one subject (a run's id, a fleet's) are delivered in their order, a later one behind an earlier one. */
  readonly subject: string;
  readonly data: JsonObject;
  /** Where more of it is read, such as `/v1/runs/run_…`: for an event that is too long to be sent whole. */
  readonly path?: string;
}

/**
 * Tells somebody outside of events. `tell` and `tellOrganization` return when everybody who wants the events has them on
 * disk, and throw otherwise: whoever has news keeps them until then, and tells them again under the same ids.
 */
export interface EventListener {
  /** Whether anybody in the project wants one of these: what costs something to tell is asked about first. */
  isWanted(env: Env, scope: Scope, types: readonly string[], subrequests: Subrequests): Promise<boolean>;
  tell(env: Env, scope: Scope, events: readonly OutboundEvent[], subrequests: Subrequests): Promise<void>;
  /** What is about the whole organisation. All events are of one family. */
  tellOrganization(env: Env, orgId: string, events: readonly OutboundEvent[], subrequests: Subrequests): Promise<void>;
}

/** Days (UTC) by their numbers since the epoch: those after `last` up to `today`. */
export interface Days {
  readonly last: number;
  readonly today: number;
}

/** Frees one object of a slice. False: it cannot be freed yet. */
export type OwnedObject = () => Promise<boolean>;

export interface SliceHooks {
  readonly events?: EventListener;
  /** Of one slice at most. */
  readonly fleets?: FleetHooks;
  /**
   * Of a project that is deleted, while its runs go: frees some of what could begin new ones, objects and rows. Gives how
   * many there were; called again until there are none.
   */
  readonly stopProject?: (env: Env, scope: Scope, subrequests: Subrequests) => Promise<number>;
  /**
   * The objects of a project, the first `limit` in an order that stays: once its runs are gone each is freed, perhaps twice.
   * Their rows go with the project's.
   */
  readonly objectsOfProject?: (env: Env, scope: Scope, limit: number) => Promise<OwnedObject[]>;
  /**
   * A segment of a run's rollouts was folded. `lines`: of the segment, if they are at hand. Never throws: nothing depends on
   * it.
   */
  readonly onSegment?: (
    env: Env,
    message: SegmentMessage,
    lines: readonly string[] | null,
    subrequests: Subrequests,
  ) => Promise<void>;
  /** Something was made in the project that may be older one day than it is to be kept, or how long that is was changed. */
  readonly onProjectChanged?: (env: Env, scope: Scope) => Promise<void>;
  /**
   * Daily, in each project: drops what is over at `now` (epoch milliseconds), `limit` rows at most. True: there may be more.
   */
  readonly sweepProject?: (env: Env, scope: Scope, now: number, limit: number) => Promise<boolean>;
  /** Daily, behind the sweep of a project: takes these days into account, each once. True: is to be called tomorrow, too. */
  readonly onProjectDays?: (env: Env, scope: Scope, days: Days, subrequests: Subrequests) => Promise<boolean>;
  /** Of an organisation whose projects are deleted: what the receipt of its deletion says. */
  readonly closeOrganization?: (
    env: Env,
    orgId: string,
    subrequests: Subrequests,
  ) => Promise<Readonly<Record<string, number>>>;
  /** Of an organisation whose projects and files are deleted: nothing of it is kept in objects of the slice. */
  readonly forgetOrganization?: (env: Env, orgId: string, subrequests: Subrequests) => Promise<void>;
}

const registered: SliceHooks[] = [];

/** Once for each slice. */
export function register(hooks: SliceHooks): void {
  registered.push(hooks);
}

/** What runs ask of the fleet they are on. */
export function fleets(): FleetHooks {
  return registered.find((hooks) => hooks.fleets !== undefined)?.fleets ?? NO_FLEETS;
}

function listeners(): EventListener[] {
  return registered.flatMap(({ events }) => events ?? []);
}

/** Tells of events of a project. */
export async function emitEvents(
  env: Env,
  scope: Scope,
  events: readonly OutboundEvent[],
  subrequests: Subrequests = new Subrequests(),
): Promise<void> {
  for (const listener of listeners()) await listener.tell(env, scope, events, subrequests);
}

/** Tells of events that are about the whole organisation, and of one family. */
export async function emitOrganizationEvents(
  env: Env,
  orgId: string,
  events: readonly OutboundEvent[],
  subrequests: Subrequests = new Subrequests(),
): Promise<void> {
  for (const listener of listeners()) await listener.tellOrganization(env, orgId, events, subrequests);
}

/** Whether anybody in the project wants to be told of one of these. */
export async function isWanted(
  env: Env,
  scope: Scope,
  types: readonly string[],
  subrequests: Subrequests,
): Promise<boolean> {
  for (const listener of listeners()) if (await listener.isWanted(env, scope, types, subrequests)) return true;
  return false;
}

/** How many objects were freed; 0: none is left that could begin a run. */
export async function stopProject(env: Env, scope: Scope, subrequests: Subrequests): Promise<number> {
  let freed = 0;
  for (const { stopProject: stop } of registered) freed += (await stop?.(env, scope, subrequests)) ?? 0;
  return freed;
}

/**
 * Objects that slices have of a project: `limit` after the first `from`, those of one slice before any of the next, since they
 * may still tell each other of events.
 */
export async function objectsOfProject(
  env: Env,
  scope: Scope,
  { from, limit }: { readonly from: number; readonly limit: number },
  subrequests: Subrequests,
): Promise<OwnedObject[]> {
  const objects: OwnedObject[] = [];
  for (const { objectsOfProject: objectsOf } of registered) {
    if (objects.length > from) break;
    const left = from + limit - objects.length;
    if (objectsOf !== undefined) objects.push(...(await subrequests.fetch(() => objectsOf(env, scope, left))));
  }
  return objects.slice(from);
}

export async function tellOfSegment(
  env: Env,
  message: SegmentMessage,
  lines: readonly string[] | null,
  subrequests: Subrequests,
): Promise<void> {
  for (const { onSegment } of registered) await onSegment?.(env, message, lines, subrequests);
}

export async function tellOfProject(env: Env, scope: Scope): Promise<void> {
  for (const { onProjectChanged } of registered) await onProjectChanged?.(env, scope);
}

/** True: some slice has something to take into account tomorrow. */
export async function tellOfDays(env: Env, scope: Scope, days: Days, subrequests: Subrequests): Promise<boolean> {
  let more = false;
  for (const { onProjectDays } of registered)
    more = ((await onProjectDays?.(env, scope, days, subrequests)) ?? false) || more;
  return more;
}

/** What slices have to say in the receipt of an organisation's deletion. */
export async function closeOrganization(
  env: Env,
  orgId: string,
  subrequests: Subrequests,
): Promise<Readonly<Record<string, number>>> {
  let said: Readonly<Record<string, number>> = {};
  for (const { closeOrganization: close } of registered)
    said = { ...said, ...(await close?.(env, orgId, subrequests)) };
  return said;
}

export async function forgetOrganization(env: Env, orgId: string, subrequests: Subrequests): Promise<void> {
  for (const { forgetOrganization: forget } of registered) await forget?.(env, orgId, subrequests);
}

/** True: there may be more. Each slice drops `limit` rows at most. */
export async function sweepProject(
  env: Env,
  scope: Scope,
  { now, limit }: { readonly now: number; readonly limit: number },
  subrequests: Subrequests,
): Promise<boolean> {
  let more = false;
  for (const { sweepProject: sweep } of registered) {
    more = (await subrequests.fetch(async () => (await sweep?.(env, scope, now, limit)) ?? false)) || more;
  }
  return more;
}
