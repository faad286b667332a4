/**
 * Finds aliases: replicas that are the same engine under two names. Weights that are loaded through one of them also
 * change what the other serves, and no probe shows it. Pure. Two host names of one server cannot be recognised.
 */
import type { UpdateMode } from "../contract/fleet.ts";

/** The normalised addresses of a replica: for calls, and for changing its weights. */
export interface Places {
  readonly calls: string;
  readonly control: string;
}

interface Placed {
  readonly name: string;
  readonly places?: Places;
}

/** The first of the given replicas that is the same engine; undefined if none is. */
export function aliasOf<Other extends Placed>(
  mode: UpdateMode,
  { places }: Pick<Placed, "places">,
  before: readonly Other[],
): Other | undefined {
  return before.find((other) => {
    if (places === undefined || other.places === undefined) return false;
    const shareControl = isSteered(mode) && places.control === other.places.control;
    return places.calls === other.places.calls || shareControl;
  });
}

/** The name of each alias, with that of the replica it equals. Settled replicas come first and keep their role. */
export function aliasesOf<One extends Placed>(
  mode: UpdateMode,
  replicas: readonly One[],
  isSettled: (replica: One) => boolean,
): ReadonlyMap<string, string> {
  const alone: One[] = [];
  const aliases = new Map<string, string>();
  for (const replica of [...replicas.filter(isSettled), ...replicas.filter((one) => !isSettled(one))]) {
    const alias = aliasOf(mode, replica, alone);
    if (alias === undefined) alone.push(replica);
    else aliases.set(replica.name, alias.name);
  }
  return aliases;
}

/** Whether Rollcall changes the weights through the control side and relies on what the control side reports. */
function isSteered(mode: UpdateMode): boolean {
  return mode !== "lora_versioned" && mode !== "reported";
}
