/**
 * A store that fails on demand. Half of the failures come after the work was done: the caller cannot tell, and must be
 * able to repeat the request.
 */
import type { Knobs } from "./knobs.ts";

/** In D1 these methods send no query yet; they only prepare one. */
const MAKERS: readonly PropertyKey[] = ["prepare", "bind", "withSession"];

export function failing<Store extends object>(store: Store, name: "STORE" | "DB", knobs: Knobs): Store {
  const fail = (when: string): never => {
    knobs.note("store");
    throw new Error(`${name} fails by plan, ${when}`);
  };
  return new Proxy(store, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property);
      if (typeof member !== "function") return member;
      if (MAKERS.includes(property)) {
        return (...args: unknown[]) => failing(Reflect.apply(member, target, args), name, knobs);
      }
      return async (...args: unknown[]) => {
        const fails = (await knobs.read()).failing.includes(name);
        const done = knobs.random() < 0.5;
        if (fails && !done) fail("before it began");
        const result: unknown = await Reflect.apply(member, target, args);
        return fails ? fail("after it was done") : result;
      };
    },
  });
}
