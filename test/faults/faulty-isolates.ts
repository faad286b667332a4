/**
 * A loader whose isolates get lost during a call: the call fails with the runtime's words, before the code began or
 * after it was done. The next call reaches the isolate again.
 */
import type { Knobs } from "./knobs.ts";

const WORDS = "Network connection lost.";
/** Calls of isolates while some get lost. Every so many of them is lost, so that a plan of many calls loses some for sure. */
let calls = 0;

export function losingIsolates(loader: WorkerLoader, knobs: Knobs): WorkerLoader {
  return new Proxy(loader, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property);
      if (property !== "get" || typeof member !== "function") return member;
      return (...args: unknown[]) => {
        const worker: WorkerStub = Reflect.apply(member, target, args);
        return { getEntrypoint: () => losingCalls(worker.getEntrypoint(), knobs) };
      };
    },
  });
}

/** The same for the functions of a player, which a call returns. */
function losingCalls<Stub extends object>(stub: Stub, knobs: Knobs): Stub {
  return new Proxy(stub, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function" || typeof name === "symbol") return member;
      return async (...args: unknown[]) => {
        const { lose_isolate } = await knobs.read();
        if (lose_isolate > 0) calls += 1;
        const lost = lose_isolate > 0 && calls % Math.ceil(1 / lose_isolate) === 0;
        const done = knobs.random() < 0.5;
        const lose = (): never => {
          knobs.note("isolate");
          throw new Error(WORDS);
        };
        if (lost && !done) lose();
        const reply: unknown = await Reflect.apply(member, target, args);
        if (lost) lose();
        return typeof reply === "object" && reply !== null ? losingCalls(reply, knobs) : reply;
      };
    },
  });
}
