/** Names of fields as a caller would write them: of a place in a request, and of the options of a constructor. */

/** `sampling.temperature`, `rows[16].question`, `metadata["a b"]`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((prefix, key) => {
    if (typeof key === "number") return `${prefix}[${key}]`;
    const name = String(key);
    if (!/^[\w$-]+$/.test(name)) return `${prefix}[${JSON.stringify(name)}]`;
    return prefix === "" ? name : `${prefix}.${name}`;
  }, "");
}

/** Where a text stands in a value; null where it does not. */
export function pathTo(value: unknown, text: string): readonly PropertyKey[] | null {
  if (value === text) return [];
  if (value === null || typeof value !== "object") return null;
  for (const [key, inner] of Object.entries(value)) {
    const rest = pathTo(inner, text);
    if (rest !== null) return [Array.isArray(value) ? Number(key) : key, ...rest];
  }
  return null;
}

/** What stands there; undefined where nothing does. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (inner !== null && typeof inner === "object" ? Reflect.get(inner, key) : undefined),
    value,
  );
}

/** A misspelt option must not be ignored: constructors refuse what they do not know, by name. */
export function refuseUnknownOptions(owner: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  throw new TypeError(`${owner} has no option ${unknown.join(", ")}; it takes ${known.join(", ")}`);
}
