/**
 * Stop conditions and cleanup handlers, in the order they are asked: priority descending, then name. The names of the
 * record are the names in reports, so a minifier that renames functions changes nothing.
 */
import type { Awaitable, Cleanup, Stop } from "./contract.ts";

export interface StopCondition<St> {
  readonly name: string;
  readonly priority: number;
  when(state: St): Awaitable<boolean>;
}
export interface CleanupHandler<St> {
  readonly name: string;
  readonly priority: number;
  run(state: St): Awaitable<void>;
}

/** `null` takes a built-in condition away. */
export type StopOptions<St> = { readonly [name: string]: Stop<St> | null };
export type CleanupOptions<St> = { readonly [name: string]: Cleanup<St> };

/** Raised by the state machine itself, before any condition is asked: they have a place here but no say. */
const MACHINE_STOPS = [
  { name: "has_error", priority: 100 },
  { name: "prompt_too_long", priority: 0 },
] as const;

/** Throws TypeError when a `null` names no built-in, or one that the state machine raises. */
export function stopConditions<St>(
  builtIn: readonly StopCondition<St>[],
  given: StopOptions<St>,
): StopCondition<St>[] {
  const machine = MACHINE_STOPS.map((stop) => ({ ...stop, when: () => false }));
  const stops = new Map<string, StopCondition<St>>();
  for (const stop of [...machine, ...builtIn]) stops.set(stop.name, stop);
  for (const [name, stop] of Object.entries(given)) {
    if (MACHINE_STOPS.some((fixed) => fixed.name === name)) {
      throw new TypeError(
        `stops.${name} cannot be changed: such a rollout has nothing to go on with`,
      );
    }
    if (stop !== null) stops.set(name, namedStop(name, stop));
    else if (!stops.delete(name)) throw new TypeError(`stops.${name}: no built-in has this name`);
  }
  return [...stops.values()].sort(inOrder);
}

export function cleanupHandlers<St>(given: CleanupOptions<St>): CleanupHandler<St>[] {
  const handlers = Object.entries(given).map(([name, handler]) =>
    typeof handler === "function"
      ? { name, priority: 0, run: handler }
      : { name, priority: handler.priority, run: handler.run },
  );
  return handlers.sort(inOrder);
}

function namedStop<St>(name: string, stop: Stop<St>): StopCondition<St> {
  return typeof stop === "function"
    ? { name, priority: 0, when: stop }
    : { name, priority: stop.priority, when: stop.when };
}

function inOrder(
  a: { name: string; priority: number },
  b: { name: string; priority: number },
): number {
  return b.priority - a.priority || (a.name < b.name ? -1 : 1);
}
