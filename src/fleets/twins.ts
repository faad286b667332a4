/**
 * Replicas that are one engine under two names: what is loaded onto one of them changes what the other serves, and no look
 * at either tells. Pure. Two host names of one server cannot be told apart by how they are written.
 */
import type { UpdateMode } from "../contract/fleet.ts";

/** Where a replica is, each written in one way: where its calls go, and where its weights are changed. */
export interface Places {
  readonly calls: string;
  readonly control: string;
}

interface Placed {
  readonly name: string;
  readonly places?: Places;
}

/** The first of those before it that is the same engine; undefined: none is. */
export function twinOf<Other extends Placed>(
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

/** Of each that shares its engine with another: that one's name. Whoever is settled stays what it is. */
export function twinsOf<One extends Placed>(
  mode: UpdateMode,
  replicas: readonly One[],
  isSettled: (replica: One) => boolean,
): ReadonlyMap<string, string> {
  const alone: One[] = [];
  const twins = new Map<string, string>();
  for (const replica of [...replicas.filter(isSettled), ...replicas.filter((one) => !isSettled(one))]) {
    const twin = twinOf(mode, replica, alone);
    if (twin === undefined) alone.push(replica);
    else twins.set(replica.name, twin.name);
  }
  return twins;
}

/** Whether Rollcall changes the weights by the control side, and believes what that shows. */
function isSteered(mode: UpdateMode): boolean {
  return mode !== "lora_versioned" && mode !== "reported";
}
