/** Rows of a results file: which environment each is of, and what of an eval is still to be run (verifiers' rules of resuming). */
import type { Json } from "./json.ts";

/**
 * The ids of `inputs` still owed, example by example in the order in which they first come. Each example has `attempts`
 * places; a finished row fills one of its example's, and the first inputs of that example take what is left. Surplus rows
 * and ids that are not asked for change nothing.
 */
export function remainingInputs(inputs: readonly number[], finished: readonly number[], attempts: number): number[] {
  const places = new Map<number, number>();
  for (const id of finished) places.set(id, (places.get(id) ?? attempts) - 1);
  const owed = new Map<number, number[]>();
  for (const id of inputs) {
    const rows = owed.get(id) ?? [];
    if (rows.length < (places.get(id) ?? attempts)) rows.push(id);
    owed.set(id, rows);
  }
  return [...owed.values()].flat();
}

/** Which environment of a mixture a row is of: `info.env_id` (a route joined by "/"), else `env_id`, else "default". */
export function environmentLabel(row: { readonly info?: unknown; readonly env_id?: unknown }): string {
  const info = typeof row.info === "string" ? parsedOrNull(row.info) : row.info;
  const given = typeof info === "object" && info !== null ? Reflect.get(info, "env_id") : undefined;
  const label = Array.isArray(given) ? given.join("/") : given;
  return String(label ?? row.env_id ?? "default");
}

export function parsedOrNull(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
