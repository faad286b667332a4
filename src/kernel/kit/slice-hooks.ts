/**
 * The hooks that slices have in the kernel. The kernel does not name any slice: each one registers its hooks before any
 * request is served (src/slices.ts).
 */
import type { JsonObject } from "../../contract/json.ts";
import type { Scope } from "../../contract/scope.ts";
import type { SegmentMessage } from "../messages/wire.ts";
import { type AgentHooks, NO_AGENTS } from "./agent-hooks.ts";
import { type EnvironmentHooks, NO_ENVIRONMENTS } from "./environment-hooks.ts";
import { type FleetHooks, NO_FLEETS } from "./fleet-hooks.ts";
import { NO_REVIEWS, type ReviewHooks } from "./review-hooks.ts";
import { Subrequests } from "./subrequests.ts";

/** Something that happened, to be delivered to subscribers. */
export interface OutboundEvent {
  /** `evt_…`, derived from the content, so that an event reported twice has the same id. Letters, digits and `_`. */
  readonly id: string;
  /** `run.completed`, `batch.ready`, `replica.down`, … */
  readonly type: string;
  readonly at: number;
  /** Events of one subject (a run's id, a fleet's) are delivered in order: a later one after an earlier one. */
  readonly subject: string;
  readonly data: JsonObject;
  /** Where to read more of it, such as `/v1/runs/run_…`: for an event that is too long to be sent whole. */
  readonly path?: string;
}

/**
 * Delivers events to subscribers outside. `notify` and `notifyOrganization` return when the events are stored for every
 * subscriber, and throw otherwise: the caller keeps its events until then, and sends them again with the same ids.
 */
export interface EventListener {
  /** Whether the project has a subscriber to one of these types. Ask first if producing the event costs something. */
  isWanted(env: Env, scope: Scope, types: readonly string[], subrequests: Subrequests): Promise<boolean>;
  notify(env: Env, scope: Scope, events: readonly OutboundEvent[], subrequests: Subrequests): Promise<void>;
  /** Events about the whole organisation. All must belong to one family of types. */
  notifyOrganization(
    env: Env,
    orgId: string,
    events: readonly OutboundEvent[],
    subrequests: Subrequests,
  ): Promise<void>;
}

/** Days (UTC) by their numbers since the epoch: the days after `last`, up to and including `today`. */
export interface Days {
  readonly last: number;
  readonly today: number;
}

/** Frees one object of a slice. False if it cannot be freed yet. */
export type OwnedObject = () => Promise<boolean>;

export interface SliceHooks {
  readonly events?: EventListener;
  /** At most one slice has it. */
  readonly fleets?: FleetHooks;
  /** At most one slice has it. */
  readonly environments?: EnvironmentHooks;
  /** At most one slice has it. */
  readonly agents?: AgentHooks;
  /** At most one slice has it. */
  readonly reviews?: ReviewHooks;
  /**
   * Called while the runs of a project are being deleted: frees some of the objects and rows that could start new runs.
   * Returns how many it freed, and is called again until it returns 0.
   */
  readonly stopProject?: (env: Env, scope: Scope, subrequests: Subrequests) => Promise<number>;
  /**
   * The first `limit` objects of a project, in a stable order. Each is freed once the project's runs are gone, perhaps
   * twice. Their rows are deleted with the project's.
   */
  readonly objectsOfProject?: (env: Env, scope: Scope, limit: number) => Promise<OwnedObject[]>;
  /**
   * A segment of a run's rollouts was written. `lines`: the lines of the segment, if they are in memory. Never throws:
   * no other work depends on it.
   */
  readonly onSegment?: (
    env: Env,
    message: SegmentMessage,
    lines: readonly string[] | null,
    subrequests: Subrequests,
  ) => Promise<void>;
  /** Something with a limited retention was created in the project, or the retention was changed. */
  readonly onProjectChanged?: (env: Env, scope: Scope) => Promise<void>;
  /**
   * Called daily for each project: deletes what has expired at `now` (epoch milliseconds), at most `limit` rows.
   * Returns true if there may be more.
   */
  readonly expireProject?: (env: Env, scope: Scope, now: number, limit: number) => Promise<boolean>;
  /**
   * Called daily after `expireProject`: accounts for these days, each once. Returns true if it must be called tomorrow
   * too.
   */
  readonly onProjectDays?: (env: Env, scope: Scope, days: Days, subrequests: Subrequests) => Promise<boolean>;
  /** For an organisation whose projects are deleted: entries for the receipt of its deletion. */
  readonly closeOrganization?: (
    env: Env,
    orgId: string,
    subrequests: Subrequests,
  ) => Promise<Readonly<Record<string, number>>>;
  /**
   * For an organisation whose projects and files are deleted: deletes everything that objects of the slice have of it.
   */
  readonly forgetOrganization?: (env: Env, orgId: string, subrequests: Subrequests) => Promise<void>;
}

const registered: SliceHooks[] = [];

/** Called once for each slice. */
export function register(hooks: SliceHooks): void {
  registered.push(hooks);
}

/** What a run needs from its fleet. */
export function fleets(): FleetHooks {
  return registered.find((hooks) => hooks.fleets !== undefined)?.fleets ?? NO_FLEETS;
}

/** The agents that play rollouts. */
export function agents(): AgentHooks {
  return registered.find((hooks) => hooks.agents !== undefined)?.agents ?? NO_AGENTS;
}

/** What people think of rollouts. */
export function reviews(): ReviewHooks {
  return registered.find((hooks) => hooks.reviews !== undefined)?.reviews ?? NO_REVIEWS;
}

/** The environments that are not part of the deployment. */
export function publishedEnvironments(): EnvironmentHooks {
  return registered.find((hooks) => hooks.environments !== undefined)?.environments ?? NO_ENVIRONMENTS;
}

function listeners(): EventListener[] {
  return registered.flatMap(({ events }) => events ?? []);
}

/** Delivers events of a project. */
export async function emitEvents(
  env: Env,
  scope: Scope,
  events: readonly OutboundEvent[],
  subrequests: Subrequests = new Subrequests(),
): Promise<void> {
  for (const listener of listeners()) await listener.notify(env, scope, events, subrequests);
}

/** Delivers events about the whole organisation. All must belong to one family of types. */
export async function emitOrganizationEvents(
  env: Env,
  orgId: string,
  events: readonly OutboundEvent[],
  subrequests: Subrequests = new Subrequests(),
): Promise<void> {
  for (const listener of listeners()) await listener.notifyOrganization(env, orgId, events, subrequests);
}

/** Whether the project has a subscriber to one of these types. */
export async function isWanted(
  env: Env,
  scope: Scope,
  types: readonly string[],
  subrequests: Subrequests,
): Promise<boolean> {
  for (const listener of listeners()) if (await listener.isWanted(env, scope, types, subrequests)) return true;
  return false;
}

/** Returns how many objects were freed; 0 if nothing is left that could start a run. */
export async function stopProject(env: Env, scope: Scope, subrequests: Subrequests): Promise<number> {
  let freed = 0;
  for (const { stopProject: stop } of registered) freed += (await stop?.(env, scope, subrequests)) ?? 0;
  return freed;
}

/**
 * Objects that slices have of a project: `limit` after the first `from`. All objects of one slice come before those of
 * the next, because they may still send each other events.
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

export async function notifyOfSegment(
  env: Env,
  message: SegmentMessage,
  lines: readonly string[] | null,
  subrequests: Subrequests,
): Promise<void> {
  for (const { onSegment } of registered) await onSegment?.(env, message, lines, subrequests);
}

export async function notifyOfProject(env: Env, scope: Scope): Promise<void> {
  for (const { onProjectChanged } of registered) await onProjectChanged?.(env, scope);
}

/** True if at least one slice must be called tomorrow too. */
export async function notifyOfDays(env: Env, scope: Scope, days: Days, subrequests: Subrequests): Promise<boolean> {
  let more = false;
  for (const { onProjectDays } of registered)
    more = ((await onProjectDays?.(env, scope, days, subrequests)) ?? false) || more;
  return more;
}

/** The entries of all slices for the receipt of an organisation's deletion. */
export async function closeOrganization(
  env: Env,
  orgId: string,
  subrequests: Subrequests,
): Promise<Readonly<Record<string, number>>> {
  let counts: Readonly<Record<string, number>> = {};
  for (const { closeOrganization: close } of registered)
    counts = { ...counts, ...(await close?.(env, orgId, subrequests)) };
  return counts;
}

export async function forgetOrganization(env: Env, orgId: string, subrequests: Subrequests): Promise<void> {
  for (const { forgetOrganization: forget } of registered) await forget?.(env, orgId, subrequests);
}

/** True if there may be more. Each slice deletes at most `limit` rows. */
export async function expireProject(
  env: Env,
  scope: Scope,
  { now, limit }: { readonly now: number; readonly limit: number },
  subrequests: Subrequests,
): Promise<boolean> {
  let more = false;
  for (const { expireProject: expire } of registered) {
    more = (await subrequests.fetch(async () => (await expire?.(env, scope, now, limit)) ?? false)) || more;
  }
  return more;
}
