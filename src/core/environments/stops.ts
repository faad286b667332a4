/**
 * Orders stop conditions, cleanup and teardown handlers: priority descending, then name. They are named by the keys of
 * the record, so a minifier that renames functions changes nothing. A subclass adds entries to those of its class. An
 * instance's entry replaces one of the same name, and `null` removes it.
 */
import { requireName } from "../../contract/shown-text.ts";
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

export type StopOptions<St> = { readonly [name: string]: Stop<St> | null };
export type CleanupOptions<St> = { readonly [name: string]: Cleanup<St> | null };

/** Raised by the state machine itself, before any condition is checked: they only have a place in the order. */
const MACHINE_STOPS = [
  { name: "has_error", priority: 100 },
  { name: "prompt_too_long", priority: 0 },
] as const;

/**
 * Throws TypeError if a `null` names no entry of `ofClass`, if an entry has a name of the state machine, and if a name
 * is too long.
 */
export function stopConditions<St>(ofClass: StopOptions<St>, given: StopOptions<St>): StopCondition<St>[] {
  const fixed = Object.keys({ ...ofClass, ...given }).find((name) => isMachineStop(name));
  if (fixed !== undefined) {
    throw new TypeError(`stops.${fixed} cannot be changed: such a rollout cannot continue`);
  }
  const machine = MACHINE_STOPS.map((stop) => ({ ...stop, when: () => false }));
  const stops = overridden("stops", ofClass, given).map(([name, stop]) => toStopCondition(name, stop));
  return [...machine, ...stops].sort(inOrder);
}

/** Throws TypeError if a `null` names no entry of `ofClass`. */
export function cleanupHandlers<St>(
  ofClass: CleanupOptions<St>,
  given: CleanupOptions<St> = {},
  option: "cleanup" | "teardown" = "cleanup",
): CleanupHandler<St>[] {
  const handlers = overridden(option, ofClass, given).map(([name, handler]) =>
    typeof handler === "function"
      ? { name, priority: 0, run: handler }
      : { name, priority: handler.priority, run: handler.run },
  );
  return handlers.sort(inOrder);
}

function overridden<Entry>(
  option: string,
  ofClass: Readonly<Record<string, Entry | null>>,
  given: Readonly<Record<string, Entry | null>>,
): [string, Entry][] {
  const stray = Object.keys(given).find((name) => given[name] === null && !ofClass[name]);
  if (stray !== undefined) {
    throw new TypeError(`${option}.${stray}: nothing of this name can be removed`);
  }
  return Object.entries({ ...ofClass, ...given }).flatMap(([name, entry]) => {
    requireName(option, name);
    return entry === null ? [] : [[name, entry]];
  });
}

function isMachineStop(name: string): boolean {
  return MACHINE_STOPS.some((fixed) => fixed.name === name);
}

function toStopCondition<St>(name: string, stop: Stop<St>): StopCondition<St> {
  return typeof stop === "function"
    ? { name, priority: 0, when: stop }
    : { name, priority: stop.priority, when: stop.when };
}

/** Priority descending, then name. */
export function inOrder(a: { name: string; priority: number }, b: { name: string; priority: number }): number {
  return b.priority - a.priority || (a.name < b.name ? -1 : 1);
}
