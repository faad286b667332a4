/**
 * Rows of a results file: the environment of each row, and which inputs of an eval are still to be run (verifiers'
 * rules of resuming).
 */

/**
 * The ids of `inputs` still to be run, example by example in the order of their first occurrence. Each example has
 * `attempts` places; a finished row fills one place of its example, and the first inputs of that example fill the rest.
 * Surplus rows and ids outside `inputs` change nothing.
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

/**
 * The environment of a mixture that a row belongs to: `info.env_id` (a route joined by "/"), else `env_id`, else
 * "default". The label is verifiers', so an `env_id` of null is "None". Throws SyntaxError if `info` is a text that is
 * not JSON.
 */
export function environmentLabel(row: { readonly info?: unknown; readonly env_id?: unknown }): string {
  const info: unknown = typeof row.info === "string" && row.info !== "" ? JSON.parse(row.info) : row.info;
  const given: unknown = typeof info === "object" && info !== null ? Reflect.get(info, "env_id") : null;
  if (Array.isArray(given)) return given.map(pythonText).join("/");
  if (given !== null && given !== undefined) return pythonText(given);
  return row.env_id === undefined ? "default" : pythonText(row.env_id);
}

/** Writes a JSON value that is neither a list nor an object as Python's `str` does. */
function pythonText(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return String(value);
}
