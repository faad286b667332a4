/** Chooses the two runs whose outputs are compared text by text. Pure. */
import type { Role } from "./asked.ts";

interface Named {
  readonly run: string;
}

interface Wanted {
  /** The run that all others are compared with. */
  readonly first: string;
  readonly role: Role;
  /** The runs that the URL names. */
  readonly from: string | undefined;
  readonly to: string | undefined;
}

export interface Pair<Side> {
  readonly old: Side;
  readonly fresh: Side;
  readonly rest: readonly Side[];
}

/** By default a baseline is compared with a candidate, one of them the first run. Null: there are not two runs. */
export function pairOf<Side extends Named>(sides: readonly Side[], wanted: Wanted): Pair<Side> | null {
  const named = (run: string | undefined) => sides.find((side) => side.run === run);
  const others = sides.filter(({ run }) => run !== wanted.first);
  const [usualOld, usualFresh] =
    wanted.role === "candidate" ? [others[0], named(wanted.first)] : [named(wanted.first), others[0]];
  const [from, to] = [named(wanted.from), named(wanted.to)];
  const isNamed = from !== undefined && to !== undefined && from !== to;
  const [old, fresh] = isNamed ? [from, to] : [usualOld, usualFresh];
  if (old === undefined || fresh === undefined) return null;
  return { old, fresh, rest: sides.filter((side) => side !== old && side !== fresh) };
}
