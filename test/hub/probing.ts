/** An environment that tries what its question says, and puts what it finds into its state. */
import { dataset, defineEnvironment, MultiTurnEnv } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string() });
/** A bundler does not resolve a name that is computed. */
const SOCKETS = ["cloudflare", "sockets"].join(":");
let shared = 0;

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({}),
  needs: ["fetch", "secret:KEY"],
  build: () =>
    new MultiTurnEnv({
      dataset: dataset(Task, "uploaded"),
      maxTurns: 2,
      setupState: async ({ task }, can) => {
        shared += 1;
        switch (task.question) {
          case "fetch":
            return { found: await tried(() => globalThis.fetch("http://127.0.0.1:9/")) };
          case "bindings": {
            const runtime: { readonly env?: object } = await import("cloudflare:workers");
            return { found: Object.keys(runtime.env ?? {}).join() };
          }
          case "modules": {
            const names = [
              "node:fs",
              "node:child_process",
              "node:worker_threads",
              "workerd:unsafe",
              "cloudflare:email",
            ];
            const missing = await Promise.all(names.map((name) => tried(() => import(name))));
            return { found: missing.join(" ") };
          }
          case "variables": {
            const { process } = globalThis as { process?: { env?: object } };
            return {
              found: JSON.stringify([
                process?.env ?? {},
                Object.keys(globalThis).filter((name) => /env|secret/i.test(name)),
              ]),
            };
          }
          case "exports": {
            const runtime: { readonly exports?: object } = await import("cloudflare:workers");
            return { found: Object.keys(runtime.exports ?? {}).join() };
          }
          case "connect": {
            const { connect } = (await import(SOCKETS)) as { connect: (to: string) => { opened: Promise<unknown> } };
            return { found: await tried(async () => await connect("127.0.0.1:9").opened) };
          }
          case "socket":
            return { found: await tried(async () => new WebSocket("ws://127.0.0.1:9/")) };
          case "undeclared secret":
            return { found: await tried(async () => can.secret("OTHER")) };
          case "undeclared host":
            return { found: await tried(() => can.fetch("http://127.0.0.1:9/")) };
          case "pollute":
            Object.assign(Object.prototype, { polluted: true });
            Object.assign(Array.prototype, { polluted: true });
            return { found: String(Reflect.get({}, "polluted")) };
          case "can.fetch": {
            const reply = await can.fetch("https://there.example/", { method: "POST", body: can.secret("KEY") });
            return { found: `${reply.status} ${reply.headers.get("x-kind")} ${await reply.text()}` };
          }
          case "refused":
            return { found: await tried(() => can.fetch("https://refused.example/")) };
          case "hang":
            await new Promise(() => undefined);
            return { found: "" };
          case "shared":
            return { found: String(shared) };
          default:
            throw new Error(`no such try: ${task.question}`);
        }
      },
      envResponse: () => "Go on.",
      rubric: { rewards: { found: ({ state }) => state.found.length } },
    }),
});

async function tried(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
    return "it worked";
  } catch (thrown) {
    return String(thrown);
  }
}
