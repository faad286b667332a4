/** The database fails just before a call is sent: what the rollout did before is not repeated. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, ToolEnv, tool } from "../../../src/core/entry.ts";
import { forgetEndpoint } from "../../../src/kernel/endpoint/call.ts";
import { FactsTable } from "../../../src/kernel/rollout/facts.ts";
import { RolloutStore } from "../../../src/kernel/rollout/store.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { script } from "../script.ts";

const DB = env.DB;
let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  const { args, needs, load } = bell;
  registerOnce({ id: "bell", version: "1.0.0", digest: "sha256:bell", args, needs, load });
});
afterEach(() => {
  env.DB = DB;
});

/** Called when the tool runs. */
let rung: () => Promise<void> = async () => undefined;

const ring = tool({
  name: "ring",
  description: "Rings the bell.",
  parameters: z.object({}),
  run: async () => {
    await rung();
    return "It rang.";
  },
});
const bell = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new ToolEnv({
      dataset: dataset(z.object({ question: z.string() }), [{ question: "Ring." }]),
      tools: [ring],
      rubric: { rewards: { one: () => 1 } },
    }),
});

/** A database that refuses the platform's next read of an endpoint, and then calls `refused`. */
function awayOnce(refused: () => void): D1Database {
  return new Proxy(DB, {
    get: (database, name) => {
      if (name !== "prepare") return Reflect.get(database, name).bind(database);
      return (query: string) => {
        const statement = database.prepare(query);
        if (!query.includes('from "endpoints"')) return statement;
        const bind = (...values: unknown[]) => {
          if (!values.includes(platform.scope.orgId)) return statement.bind(...values);
          env.DB = database;
          refused();
          throw new Error("D1 is away");
        };
        return Object.assign(Object.create(statement), { bind });
      };
    },
  });
}

test("a tool does not run again if the database fails just before the next call is sent", async () => {
  const turns = [{ tool_calls: [{ id: "call", name: "ring", arguments: {} }] }, "Done."];
  const model = script(turns);
  const request = { environment: "bell", model, num_examples: 1 };
  let [rings, refusals] = [0, 0];
  rung = async () => {
    rings += 1;
    if (rings > 1) return;
    forgetEndpoint(platform.scope, await endpointOf(rolloutAt((await begun).id)));
    env.DB = awayOnce(() => {
      refusals += 1;
    });
  };
  const begun = platform.start(request);
  const { id } = await begun;
  expect(await platform.ended(id)).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect({ rings, refusals }).toEqual({ rings: 1, refusals: 1 });
  expect((await requestsOf(model)).length).toBe(2);
});

async function endpointOf(rollout: string): Promise<string> {
  const spec = await platform.inRollout(rollout, (_, { storage }) =>
    new RolloutStore(new FactsTable(storage.sql), rollout).spec(),
  );
  if (spec === null) throw new Error("the rollout was never begun");
  return spec.endpoint_id;
}
