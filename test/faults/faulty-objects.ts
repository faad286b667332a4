/**
 * Objects whose answers get lost: the request takes effect, but the caller gets an error. A call that never arrives is
 * another fault, which kills produce.
 */
import type { Knobs } from "./knobs.ts";

interface Named {
  readonly getByName: (name: string) => object;
}

export function losingReplies<Objects extends Named>(objects: Objects, knobs: Knobs): Objects {
  return new Proxy(objects, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property);
      if (typeof member !== "function") return member;
      if (property !== "getByName") return member.bind(target);
      return (name: string) => losingAnswers(target.getByName(name), knobs);
    },
  });
}

function losingAnswers(stub: object, knobs: Knobs): object {
  return new Proxy(stub, {
    get: (target, method) => {
      const call: unknown = Reflect.get(target, method);
      if (typeof call !== "function") return call;
      return async (...args: unknown[]) => {
        const { lose_reply } = await knobs.read();
        const lost = knobs.random() < lose_reply;
        const reply: unknown = await Reflect.apply(call, target, args);
        if (!lost) return reply;
        knobs.note("reply");
        throw new Error(`the answer to ${String(method)} is lost by plan`);
      };
    },
  });
}
