/** Names of fields as a caller would write them: of places in a request, and of options of a constructor. */

/** `sampling.temperature`, `rows[16].question`, `metadata["a b"]`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((prefix, key) => {
    if (typeof key === "number") return `${prefix}[${key}]`;
    const name = String(key);
    if (!/^[\w$-]+$/.test(name)) return `${prefix}[${JSON.stringify(name)}]`;
    return prefix === "" ? name : `${prefix}.${name}`;
  }, "");
}

/** The path of a text in a value; null if it is not there. */
export function pathTo(value: unknown, text: string): readonly PropertyKey[] | null {
  if (value === text) return [];
  if (value === null || typeof value !== "object") return null;
  for (const [key, inner] of Object.entries(value)) {
    const rest = pathTo(inner, text);
    if (rest !== null) return [Array.isArray(value) ? Number(key) : key, ...rest];
  }
  return null;
}

/** The value at the path; undefined if there is none. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (inner !== null && typeof inner === "object" ? Reflect.get(inner, key) : undefined),
    value,
  );
}

/** Throws for unknown options of a constructor, with their names: a misspelt option must not be ignored. */
export function refuseUnknownOptions(owner: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  throw new TypeError(`${owner} has no option ${unknown.join(", ")}; it takes ${known.join(", ")}`);
}
