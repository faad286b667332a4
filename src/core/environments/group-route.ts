/** The way to a row's environment: `info.env_id`, a name, or in nested groups the names from the outermost group on. */
import { isRecord, type Json, type JsonObject } from "../../contract/json.ts";
import type { RoutedRow } from "./contract.ts";

type EnvId = string | readonly string[];

/**
 * The member whose row it is, and the row as that member knows it. Without a route it is the only member's. Throws
 * RangeError where that is not clear, or nobody has the name.
 */
export function takeRoute<Member>(
  members: ReadonlyMap<string, Member>,
  { task, info }: RoutedRow,
): { readonly name: string; readonly member: Member; readonly inner: RoutedRow } {
  const [first, ...rest] = routeOf(info);
  const name = first ?? (members.size === 1 ? [...members.keys()][0] : undefined);
  const known = [...members.keys()].join(", ");
  if (name === undefined) throw new RangeError(`info.env_id is missing: it is one of ${known}`);
  const member = members.get(name);
  if (member === undefined) throw new RangeError(`no environment ${name}: it is one of ${known}`);
  return { name, member, inner: { task: withoutRoute(task, rest), info: strip(info, rest) } };
}

/** The row of member `name` as the group carries it. */
export function addRoute(name: string, row: JsonObject): JsonObject {
  const info = asObject(row["info"]);
  const env_id: EnvId = [name, ...routeOf(info)];
  return { ...row, info: { ...info, env_id: env_id.length === 1 ? name : env_id } };
}

function routeOf(info: Json): readonly string[] {
  const { env_id } = asObject(info);
  if (typeof env_id === "string") return [env_id];
  const names: readonly Json[] = Array.isArray(env_id) ? env_id : [];
  return names.filter((name) => typeof name === "string");
}

/** `info` goes with the route when nothing else is in it: it was there for the route alone. */
function withoutRoute(task: JsonObject, rest: readonly string[]): JsonObject {
  if (task["info"] === undefined) return task;
  const { info, ...columns } = task;
  const inner = strip(info ?? {}, rest);
  return Object.keys(inner).length === 0 ? columns : { ...columns, info: inner };
}

function strip(info: Json, rest: readonly string[]): JsonObject {
  const { env_id: _, ...others } = asObject(info);
  if (rest.length === 0) return others;
  return { ...others, env_id: rest.length === 1 ? (rest[0] ?? "") : rest };
}

/** `info` may be a JSON text, as in datasets whose rows differ in shape. */
function asObject(info: Json | undefined): JsonObject {
  const read = typeof info === "string" ? parsed(info) : (info ?? null);
  return isRecord(read) ? read : {};
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
