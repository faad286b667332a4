/** Where in a request something stands, as its caller would write it. */

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
