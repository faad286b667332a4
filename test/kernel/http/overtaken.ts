/** A database in which another request is faster, so that a race happens in the same way every time. */

/** `act` is awaited just before the first matching statement runs, or between its read and its answer. */
export function overtaken(
  database: D1Database,
  statement: RegExp,
  act: () => Promise<unknown>,
  when: "before" | "after" = "before",
): D1Database {
  let acted = false;
  const prepare = (query: string) => {
    const prepared = database.prepare(query);
    if (acted || !statement.test(query)) return prepared;
    acted = true;
    return late(prepared, act, when);
  };
  return changed(database, { prepare });
}

function late(
  prepared: D1PreparedStatement,
  act: () => Promise<unknown>,
  when: "before" | "after",
): D1PreparedStatement {
  return changed(prepared, {
    bind: (...values: unknown[]) => late(prepared.bind(...values), act, when),
    raw: async () => {
      if (when === "before") await act();
      const rows = await prepared.raw();
      if (when === "after") await act();
      return rows;
    },
  });
}

function changed<T extends object>(target: T, changes: Readonly<Record<string, unknown>>): T {
  return new Proxy(target, {
    get: (_, name) => {
      const value = typeof name === "string" ? changes[name] : undefined;
      return value ?? Reflect.get(target, name);
    },
  });
}
