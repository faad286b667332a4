/**
 * Several environments with one dataset: `info.env_id` of each row names the environment that sets it up, plays and
 * scores it.
 *
 * Invariants. A group has no turns of its own. Each group removes its level of the route before an environment sees the
 * row, so that the environment plays its rows as it would alone; the stored row keeps the whole route. A member has one
 * name in the whole group; in nested groups it is the names on its route, joined by "/".
 */

import * as z from "zod";
import { isRecord, type Json, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { MemberRows } from "../../contract/member-rows.ts";
import { type AnyRubric, Rubric, RubricGroup, type ScoreFunction } from "../rubrics/rubric.ts";
import type { AnyEnvironment, PlayedEnvironment, Route } from "./any-environment.ts";
import type { Cleanup, GroupArgs, Need, RewardArgs, RoutedRow, ScoringArgs, TaskRow } from "./contract.ts";
import { type Dataset, dataset } from "./dataset.ts";
import { InfoError, readRoutedInfo } from "./row-info.ts";

export class EnvGroup implements AnyEnvironment {
  /** Exists only as a type. */
  declare readonly types: readonly [unknown, unknown];
  readonly dataset: Dataset<unknown>;
  readonly evalDataset: Dataset<unknown> | null;
  /**
   * The judges that a run of the group may use, and whether whole groups are scored. A row is scored by its
   * environment's rubric, and has 0 for the metrics of all others; a row of no member scores 0 throughout.
   */
  readonly rubric: RubricGroup;
  /** That of its members if it is the same for all of them, else null. */
  readonly maxReward: number | null;
  readonly members: readonly string[];
  needs: readonly Need[];
  forkable: boolean;
  readonly #environments: ReadonlyMap<string, AnyEnvironment>;

  /**
   * `environments` are given by name. Throws RangeError if there is none, if there are too many, or if two have the
   * same name.
   */
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
    const [first = null, ...others] = new Set(all.map(({ maxReward }) => maxReward));
    this.maxReward = others.length === 0 ? first : null;
    this.needs = [...new Set(all.flatMap((environment) => environment.needs))];
    this.forkable = all.every((environment) => environment.forkable);
  }

  get players(): readonly PlayedEnvironment[] {
    return [...this.#environments.values()].flatMap((environment) => environment.players);
  }

  memberRows(): readonly MemberRows[] | null {
    return this.dataset.kind === "uploaded" ? null : rowsOfMembers([...this.#environments.values()]);
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

/** The route to a row's environment: `info.env_id`, a name, or in nested groups names, the outermost first. */
type EnvId = string | readonly string[];

/**
 * The member that plays a row, and the row as that member sees it. A row without a route belongs to the only member.
 * Throws RangeError if there are several members, or none has the name.
 */
function takeRoute<Member>(
  members: ReadonlyMap<string, Member>,
  { task, info }: RoutedRow,
): { readonly name: string; readonly member: Member; readonly inner: RoutedRow } {
  const [first, ...rest] = routeOf(info);
  const name = first ?? (members.size === 1 ? [...members.keys()][0] : undefined);
  const known = [...members.keys()].join(", ");
  if (name === undefined) throw new RangeError(`info.env_id is missing: use one of ${known}`);
  const member = members.get(name);
  if (member === undefined) throw new RangeError(`no environment ${name}: use one of ${known}`);
  return { name, member, inner: { task: withoutRoute(task, rest), info: strip(info, rest) } };
}

/** A row of the member `name` as the group stores it. */
function addRoute(name: string, row: JsonObject): JsonObject {
  const info = readRoutedInfo(row["info"]);
  const env_id: EnvId = [name, ...routeOf(info)];
  return { ...row, info: { ...info, env_id: env_id.length === 1 ? name : env_id } };
}

function routeOf(info: Json): readonly string[] {
  const { env_id = null } = readRoutedInfo(info);
  if (env_id === null) return [];
  if (typeof env_id === "string") return [env_id];
  if (Array.isArray(env_id)) return env_id.map(String);
  throw new RangeError("info.env_id must be a name or a list of names");
}

/** Removes `info` together with the route if it has nothing else: then only the group added it. */
function withoutRoute(task: JsonObject, rest: readonly string[]): JsonObject {
  if (task["info"] === undefined) return task;
  const { info, ...columns } = task;
  const inner = strip(info ?? {}, rest);
  return Object.keys(inner).length === 0 ? columns : { ...columns, info: inner };
}

function strip(info: Json, rest: readonly string[]): JsonObject {
  const { env_id: _, ...others } = readRoutedInfo(info);
  if (rest.length === 0) return others;
  return { ...others, env_id: rest.length === 1 ? (rest[0] ?? "") : rest };
}

/**
 * The rows of several datasets as one, each with the name of its dataset.
 *
 * Invariants. A row is parsed by the schema of its dataset, without its route, and gets the route again afterwards.
 * Finite datasets follow one after the other. If one is endless, the datasets alternate, and a finite one starts again
 * at its end. If the rows of one come with the run, the rows of all do, and name their member.
 */
type Member = readonly [name: string, rows: Dataset<unknown>];
type MemberRow = { readonly name: string; readonly rows: Dataset<unknown>; readonly index: number };

function groupDataset(members: readonly Member[]): Dataset<unknown> {
  const schema = schemaOfMembers(new Map(members));
  if (members.some(([, { kind }]) => kind === "uploaded")) return dataset(schema, "uploaded");
  const made = ({ name, rows, index }: MemberRow, random: () => number) => routeRow(name, rows.make(index, random));
  const lengths = members.map(([, { length }]) => length);
  if (lengths.includes(null)) {
    return dataset(schema, (index, random) => made(inTurn(members, index), random));
  }
  const length = lengths.reduce<number>((sum, each) => sum + (each ?? 0), 0);
  const row = (index: number, random: () => number) => made(inOrder(members, index), random);
  return dataset(schema, { length, row });
}

/** Where `groupDataset` has the rows of each playing member: none of the datasets is uploaded. */
function rowsOfMembers(environments: readonly AnyEnvironment[]): MemberRows[] {
  const inTurns = environments.some(({ dataset }) => dataset.length === null);
  let before = 0;
  return environments.flatMap((environment, at) => {
    const { length } = environment.dataset;
    const outer = inTurns ? { first: at, step: environments.length } : { first: before, step: 1 };
    before += length ?? 0;
    const own = environment.memberRows?.() ?? [{ first: 0, step: 1, length }];
    return own.map((rows) => ({
      first: outer.first + outer.step * rows.first,
      step: outer.step * rows.step,
      length: rows.length,
    }));
  });
}

function inTurn(members: readonly Member[], index: number): MemberRow {
  const [name, rows] = members[index % members.length] ?? failBeyondEnd(index);
  const round = Math.floor(index / members.length);
  return { name, rows, index: rows.length === null ? round : round % Math.max(1, rows.length) };
}

function inOrder(members: readonly Member[], index: number): MemberRow {
  let left = index;
  for (const [name, rows] of members) {
    const { length } = rows;
    if (length !== null && left < length) return { name, rows, index: left };
    left -= length ?? 0;
  }
  return failBeyondEnd(index);
}

function failBeyondEnd(index: number): never {
  throw new RangeError(`row ${index} does not exist`);
}

function routeRow(name: string, row: unknown): JsonObject {
  if (!isRow(row)) throw new TypeError(`a row of ${name} is not an object`);
  return addRoute(name, row);
}

/** Accepts any object as input; the schema that applies depends on its route. */
function schemaOfMembers(members: ReadonlyMap<string, Dataset<unknown>>): z.ZodType<unknown, JsonObject> {
  const names = [...members.keys()].join(", ");
  return z
    .custom<JsonObject>(isRow, "must be an object")
    .transform((row, context): unknown => {
      const taken = routeTaken(members, row);
      if (taken instanceof Error) {
        const path = taken instanceof InfoError ? taken.path.split(".") : ["info", "env_id"];
        context.addIssue({ code: "custom", path, message: taken.message });
        return z.NEVER;
      }
      const parsed = taken.member.schema.safeParse(taken.inner.task);
      if (parsed.success && isRow(parsed.data)) return addRoute(taken.name, parsed.data);
      for (const { path, message } of parsed.error?.issues ?? []) {
        context.addIssue({ code: "custom", path: [...path], message });
      }
      return z.NEVER;
    })
    .meta({ description: `a row of ${names}, with that name as info.env_id` });
}

function routeTaken(members: ReadonlyMap<string, Dataset<unknown>>, row: JsonObject) {
  try {
    return takeRoute(members, { task: row, info: row["info"] ?? {} });
  } catch (thrown) {
    if (thrown instanceof RangeError) return thrown;
    throw thrown;
  }
}

/** The content of the row is checked later, like that of every parsed row. */
function isRow(row: unknown): row is JsonObject {
  return isRecord(row);
}

/**
 * The rubrics of several environments as one. A function scores the rows of its own environment, and gives 0 for all
 * others. So a row has its environment's reward, and all metrics.
 */
type Args = RewardArgs<unknown, unknown>;
type State = Args["state"];
/** The state as one environment sees it; null for a row of another. */
type OwnState = (state: State) => State | null;

function groupRubric(environments: ReadonlyMap<string, AnyEnvironment>): RubricGroup {
  const rubrics = [...environments].flatMap(([name, { rubric }]) => {
    const own = ownStates(environments, name);
    return rubric.rubrics.map((each) => new MemberRubric(each, own));
  });
  return new RubricGroup(rubrics);
}

class MemberRubric extends Rubric {
  readonly #rubric: AnyRubric;
  readonly #own: OwnState;

  constructor(rubric: AnyRubric, own: OwnState) {
    const { parser, judges, judgements } = rubric;
    super({ ...(parser && { parser }), judges, judgements, cleanup: ownCleanup(rubric, own) });
    this.#rubric = rubric;
    this.#own = own;
  }

  override get functions(): readonly ScoreFunction[] {
    return [...this.#rubric.functions.map((fn) => this.#ofMember(fn)), ...super.functions];
  }

  override get objects(): Readonly<Record<string, unknown>> {
    return { ...this.#rubric.objects, ...super.objects };
  }

  override async provided(args: ScoringArgs<unknown, unknown>) {
    const own = ownArgs(args, this.#own);
    const provided = own === null ? {} : await this.#rubric.provided(own);
    return { ...provided, ...(await super.provided(args)) };
  }

  #ofMember(fn: ScoreFunction): ScoreFunction {
    const { name, weight } = fn;
    if (!fn.group) {
      const score = (args: Args) => {
        const own = ownArgs(args, this.#own);
        return own === null ? 0 : fn.score(own);
      };
      return { name, weight, group: false, score };
    }
    // All members of a scoring group are rollouts of one row.
    const score = (group: readonly Args[], shared: GroupArgs) => {
      const own = group.map((args) => ownArgs(args, this.#own)).filter((args) => args !== null);
      return own.length === 0 ? group.map(() => 0) : fn.score(own, shared);
    };
    return { name, weight, group: true, score };
  }
}

function ownArgs<A extends ScoringArgs<unknown, unknown>>(args: A, own: OwnState): A | null {
  const state = own(args.state);
  if (state === null) return null;
  return { ...args, state, task: state.task, info: state.info };
}

function ownCleanup({ cleanupHandlers }: AnyRubric, own: OwnState): Readonly<Record<string, Cleanup<State>>> {
  const handlers = cleanupHandlers.map(({ name, priority, run }) => {
    const ofMember = async (state: State) => {
      const inner = own(state);
      if (inner !== null) await run(inner);
    };
    return [name, { priority, run: ofMember }] as const;
  });
  return Object.fromEntries(handlers);
}

/** Keeps one inner state for each state, so that a function reads what an earlier one wrote. */
function ownStates(members: ReadonlyMap<string, AnyEnvironment>, name: string): OwnState {
  const known = new WeakMap<object, State | null>();
  return (state) => {
    const made = known.get(state);
    if (made !== undefined) return made;
    const row = ownRow(members, name, state);
    const own = row === null ? null : { ...state, ...row };
    known.set(state, own);
    return own;
  };
}

function ownRow(members: ReadonlyMap<string, AnyEnvironment>, name: string, { task, info }: State): RoutedRow | null {
  try {
    const taken = takeRoute(members, { task: task as TaskRow, info });
    return taken.name === name ? taken.inner : null;
  } catch (thrown) {
    // A row of no member scores 0 throughout.
    if (thrown instanceof RangeError) return null;
    throw thrown;
  }
}
