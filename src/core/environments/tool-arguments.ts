/**
 * A call's arguments, checked against the tool's parameters.
 *
 * Invariants. Under a strict schema a model leaves a parameter out by a null (tool-schema.ts), at any depth: a null that the
 * parameters refuse, where they take nothing at all, is taken for that. Every other null stays, and is refused as what was sent.
 * The work is that of three checks.
 */
import type * as z from "zod";
import { isRecord } from "../../contract/json.ts";

type Path = readonly PropertyKey[];
/** Places below a value, by their next step; one without steps is meant itself. */
type Places = Map<PropertyKey, Places>;

export function parseArguments<P extends z.ZodObject>(
  parameters: P,
  args: Readonly<Record<string, unknown>>,
): z.ZodSafeParseResult<z.infer<P>> {
  const asSent = parameters.safeParse(args);
  if (asSent.success) return asSent;
  const nulls = pathsOf(asSent.error.issues).filter((path) => valueAt(args, path) === null);
  if (nulls.length === 0) return asSent;
  const withoutNulls = parameters.safeParse(without(args, placesOf(nulls)));
  if (withoutNulls.success) return withoutNulls;
  const needed = new Set(pathsOf(withoutNulls.error.issues).map(nameOf));
  const omitted = nulls.filter((path) => !needed.has(nameOf(path)));
  return parameters.safeParse(without(args, placesOf(omitted)));
}

/** Where issues are, those of each alternative of a union among them. */
function pathsOf(issues: readonly z.core.$ZodIssue[], base: Path = []): Path[] {
  return issues.flatMap((issue) => {
    const path = [...base, ...issue.path];
    const alternatives = issue.code === "invalid_union" ? issue.errors : [];
    return [path, ...alternatives.flatMap((inner) => pathsOf(inner, path))];
  });
}

function nameOf(path: Path): string {
  return JSON.stringify(path);
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined),
    value,
  );
}

function placesOf(paths: readonly Path[]): Places {
  const root: Places = new Map();
  for (const path of paths) {
    let at = root;
    for (const key of path) {
      const next: Places = at.get(key) ?? new Map();
      at.set(key, next);
      at = next;
    }
  }
  return root;
}

/** A copy without these members of objects; an item of a list stays. */
function without(value: unknown, places: Places): unknown {
  if (places.size === 0) return value;
  if (Array.isArray(value)) {
    return value.map((item, at) => without(item, places.get(at) ?? new Map()));
  }
  if (!isRecord(value)) return value;
  const members = Object.entries(value)
    .filter(([key]) => places.get(key)?.size !== 0)
    .map(([key, member]) => [key, without(member, places.get(key) ?? new Map())]);
  return Object.fromEntries(members);
}
