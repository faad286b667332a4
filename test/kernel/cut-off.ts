/** An environment whose stores stop answering at a call that a test chooses, as for a process that is killed there. */
import { env } from "cloudflare:workers";

export interface CutOff {
  readonly env: Env;
  /** Resolves when the chosen call was reached. */
  readonly reached: Promise<void>;
  /** Ends the work that waits for the chosen call, with an error. What it then cleans up is done at `work`'s end. */
  readonly bury: () => void;
}

/** `before`: the call is not made; `after`: it is made, and its caller gets no answer. Calls are counted from 0. */
export function cutOffAt(call: number, at: "before" | "after"): CutOff {
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
  const { promise: silence, reject } = Promise.withResolvers<never>();
  // It is an error only for the one who waits for it.
  silence.catch(() => undefined);
  let calls = 0;
  const suffer = async (make: () => Promise<unknown>): Promise<unknown> => {
    const isLast = calls === call;
    calls += 1;
    if (!isLast) return await make();
    if (at === "after") await make();
    reach();
    return await silence;
  };
  const wrapped = <T extends object>(target: T, called: readonly string[], made: readonly string[]): T =>
    new Proxy(target, {
      get: (_, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        const make = (...args: unknown[]) => Reflect.apply(member, target, args);
        if (called.includes(String(name))) return (...args: unknown[]) => suffer(async () => await make(...args));
        return made.includes(String(name))
          ? (...args: unknown[]) => wrapped(make(...args), ["run", "all", "raw", "first"], ["bind"])
          : make;
      },
    });
  const DB = wrapped(env.DB, ["batch"], ["prepare"]);
  const STORE = wrapped(env.STORE, ["put", "get", "list", "delete", "createMultipartUpload"], []);
  return { env: { ...env, DB, STORE }, reached, bury: () => reject(new Error("the process was killed")) };
}
