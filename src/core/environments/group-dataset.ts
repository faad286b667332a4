/**
 * The rows of several datasets as one, each with the name of its own.
 *
 * Invariants. A row is parsed by the schema of the dataset it belongs to, without its route, and carries the route again
 * afterwards. Datasets that end stand one after the other. Where one does not end, they take turns, and one that ends
 * begins again. Where the rows of one come with the run, all of them do, and say whose they are.
 */
import * as z from "zod";
import type { JsonObject } from "../../contract/json.ts";
import { type Dataset, dataset } from "./dataset.ts";
import { addRoute, takeRoute } from "./group-route.ts";

type Member = readonly [name: string, rows: Dataset<unknown>];
type Place = { readonly name: string; readonly rows: Dataset<unknown>; readonly index: number };

export function groupDataset(members: readonly Member[]): Dataset<unknown> {
  const schema = routedSchema(new Map(members));
  if (members.some(([, { kind }]) => kind === "uploaded")) return dataset(schema, "uploaded");
  const made = ({ name, rows, index }: Place, random: () => number) => routedRow(name, rows.make(index, random));
  const lengths = members.map(([, { length }]) => length);
  if (lengths.includes(null)) {
    return dataset(schema, (index, random) => made(inTurn(members, index), random));
  }
  const length = lengths.reduce<number>((sum, each) => sum + (each ?? 0), 0);
  const row = (index: number, random: () => number) => made(inOrder(members, index), random);
  return dataset(schema, { length, row });
}

function inTurn(members: readonly Member[], index: number): Place {
  const [name, rows] = members[index % members.length] ?? nobody(index);
  const round = Math.floor(index / members.length);
  return { name, rows, index: rows.length === null ? round : round % Math.max(1, rows.length) };
}

function inOrder(members: readonly Member[], index: number): Place {
  let left = index;
  for (const [name, rows] of members) {
    const { length } = rows;
    if (length !== null && left < length) return { name, rows, index: left };
    left -= length ?? 0;
  }
  return nobody(index);
}

function nobody(index: number): never {
  throw new RangeError(`row ${index} is beyond the end`);
}

function routedRow(name: string, row: unknown): JsonObject {
  if (!isRow(row)) throw new TypeError(`a row of ${name} is no object`);
  return addRoute(name, row);
}

/** Any object on the way in; which one it must be follows from its route. */
function routedSchema(members: ReadonlyMap<string, Dataset<unknown>>): z.ZodType<unknown, JsonObject> {
  const names = [...members.keys()].join(", ");
  return z
    .custom<JsonObject>(isRow, "must be an object")
    .transform((row, context): unknown => {
      const taken = routeTaken(members, row);
      if (taken instanceof Error) {
        context.addIssue({ code: "custom", path: ["info", "env_id"], message: taken.message });
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

/** What it holds is checked with every other row, once it is parsed. */
function isRow(row: unknown): row is JsonObject {
  return typeof row === "object" && row !== null && !Array.isArray(row);
}
