/**
 * Several environments behind one dataset: each row says by `info.env_id` whose it is, and that environment sets it up,
 * plays and scores it.
 *
 * Invariants. A group has no turns of its own. Its route is taken off a row, one level a group, before an environment sees
 * it, so that it plays its rows as it would alone; what is stored keeps the whole route. A member is known by one name
 * throughout the group, in nested groups by the names on its way, joined by "/".
 */

import { LIMITS } from "../../contract/limits.ts";
import type { RubricGroup } from "../rubrics/rubric-group.ts";
import type { AnyEnvironment, PlayedEnvironment, Route } from "./any-environment.ts";
import type { Need, RoutedRow } from "./contract.ts";
import type { Dataset } from "./dataset.ts";
import { groupDataset } from "./group-dataset.ts";
import { takeRoute } from "./group-route.ts";
import { groupRubric } from "./group-rubric.ts";

export class EnvGroup implements AnyEnvironment {
  /** Never there at run time. */
  declare readonly types: readonly [unknown, unknown];
  readonly dataset: Dataset<unknown>;
  readonly evalDataset: Dataset<unknown> | null;
  /**
   * What a run of the group may ask of its judges, and whether it scores whole groups. It scores a row as its environment
   * does, and gives every other environment's metrics as 0; a row that is nobody's scores 0 throughout.
   */
  readonly rubric: RubricGroup;
  readonly members: readonly string[];
  needs: readonly Need[];
  forkable: boolean;
  readonly #environments: ReadonlyMap<string, AnyEnvironment>;

  /** By name. Throws RangeError when there is none, when there are too many, or when two would have one name. */
  constructor(environments: Readonly<Record<string, AnyEnvironment>>) {
    const members = Object.entries(environments);
    if (members.length === 0) throw new RangeError("a group needs at least one environment");
    this.#environments = new Map(members);
    const all = members.map(([, environment]) => environment);
    this.members = namesOf(members);
    this.dataset = groupDataset(members.map(([name, environment]) => [name, environment.dataset]));
    this.evalDataset = all.some((environment) => environment.evalDataset !== null)
      ? groupDataset(members.map(([name, { evalDataset, dataset }]) => [name, evalDataset ?? dataset]))
      : null;
    this.rubric = groupRubric(this.#environments);
    this.needs = [...new Set(all.flatMap((environment) => environment.needs))];
    this.forkable = all.every((environment) => environment.forkable);
  }

  get players(): readonly PlayedEnvironment[] {
    return [...this.#environments.values()].flatMap((environment) => environment.players);
  }

  route(row: RoutedRow): Route {
    const { name, member, inner } = takeRoute(this.#environments, row);
    const route = member.route(inner);
    return { ...route, member: nameIn(name, route.member) };
  }
}

function namesOf(members: readonly (readonly [string, AnyEnvironment])[]): string[] {
  const names = members.flatMap(([name, { members: inner }]) =>
    inner.length === 0 ? [name] : inner.map((each) => nameIn(name, each)),
  );
  const { groupMembers, nameCharacters } = LIMITS;
  if (names.length > groupMembers) {
    throw new RangeError(`a group of ${names.length} environments: at most ${groupMembers}`);
  }
  const long = names.find((name) => name.length > nameCharacters);
  if (long !== undefined) {
    throw new RangeError(`the name ${long} is over ${nameCharacters} characters`);
  }
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new RangeError(`two environments are called ${twice}`);
  return names;
}

function nameIn(group: string, member: string | null): string {
  return member === null ? group : `${group}/${member}`;
}
