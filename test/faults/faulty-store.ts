/**
 * A store that fails while it is told to. Half of the failures come after the work was done: whoever asked cannot tell,
 * and must be able to ask again.
 */
import type { Knobs } from "./knobs.ts";

/** Of D1: these ask nothing yet, they only make what does. */
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
