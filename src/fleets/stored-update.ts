/** A fleet's update settings as stored, perhaps by an earlier version of Rollcall. */
import { type FleetUpdate, UPDATE_MODES } from "../contract/fleet.ts";

/** `removed`: the stored mode, if that mode no longer exists. Then `mode` is `reported`. */
export type StoredUpdate = FleetUpdate & { readonly removed?: string };

type Written = Omit<StoredUpdate, "mode"> & { readonly mode: string; readonly init_info?: unknown };

/** A mode that no longer exists is read as `reported`: Rollcall then changes nothing at the fleet's engines. */
export function readUpdate({ mode, init_info: _, ...rest }: Written): StoredUpdate {
  const known = UPDATE_MODES.find((one) => one === mode);
  return known === undefined ? { ...rest, mode: "reported", removed: mode } : { ...rest, mode: known };
}

/** The error for a fleet whose mode no longer exists; null if its mode exists. */
export function whyRemoved({ removed }: StoredUpdate): string | null {
  if (removed === undefined) return null;
  return `the fleet's update.mode ${removed} was removed: change it to one of ${UPDATE_MODES.join(", ")}`;
}
