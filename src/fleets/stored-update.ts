/** A fleet's update as it is stored, which may have been written by an earlier version of Rollcall. */
import { type FleetUpdate, UPDATE_MODES } from "../contract/fleet.ts";

/** `removed`: the mode it was stored with, where that does not exist any more. Then `mode` is `reported`. */
export type StoredUpdate = FleetUpdate & { readonly removed?: string };

type Written = Omit<StoredUpdate, "mode"> & { readonly mode: string; readonly init_info?: unknown };

/** A mode that does not exist any more is read as `reported`: Rollcall then changes nothing at its engines. */
export function readUpdate({ mode, init_info: _, ...rest }: Written): StoredUpdate {
  const known = UPDATE_MODES.find((one) => one === mode);
  return known === undefined ? { ...rest, mode: "reported", removed: mode } : { ...rest, mode: known };
}

/** What is wrong with a fleet whose mode does not exist any more; null: nothing. */
export function whyRemoved({ removed }: StoredUpdate): string | null {
  if (removed === undefined) return null;
  return `the fleet's update.mode ${removed} was removed: change it to one of ${UPDATE_MODES.join(", ")}`;
}
