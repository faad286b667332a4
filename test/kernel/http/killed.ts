/** A database whose caller is killed at a call that a test chooses. */

export interface Killing {
  readonly DB: D1Database;
  /** Resolves when the caller is killed: none of its work continues after that. */
  readonly killed: Promise<void>;
}

/** `before`: the call is not made; `after`: it is made, and its caller gets no answer. Calls are counted from 0. */
export function killedAt(database: D1Database, call: number, at: "before" | "after"): Killing {
  const { promise: killed, resolve: kill } = Promise.withResolvers<void>();
  const never = Promise.withResolvers<never>();
  let calls = 0;
  const suffer = async (make: () => Promise<unknown>): Promise<unknown> => {
    const isLast = calls === call;
    calls += 1;
    if (!isLast) return await make();
    if (at === "after") await make();
    kill();
    return await never.promise;
  };
  const wrapped = <T extends object>(target: T, called: readonly string[], made: readonly string[]): T =>
    new Proxy(target, {
      get: (_, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        const make = (...args: unknown[]) => Reflect.apply(member, target, args);
        if (called.includes(String(name))) return (...args: unknown[]) => suffer(async () => await make(...args));
        return made.includes(String(name)) ? (...args: unknown[]) => wrapped(make(...args), ASKS, ["bind"]) : make;
      },
    });
  return { DB: wrapped(database, ["batch", "exec"], ["prepare"]), killed };
}

const ASKS = ["run", "all", "raw", "first"];
