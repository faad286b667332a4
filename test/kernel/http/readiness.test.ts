/** `/readyz` with the real bindings, and with bindings of which one is missing or fails. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { checkReadiness } from "../../../src/kernel/service/check-readiness.ts";
import { openTestApi } from "./test-api.ts";
import { checkReply } from "./validate-responses.ts";

interface Answer {
  readonly status: string;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly problem: string | null }[];
}

/** A platform with these bindings in place of its own; a binding that is undefined is not bound. */
async function openPlatform(bindings: object) {
  const { app, clock } = await openTestApi({ checkReadiness });
  const ask = async () => {
    const reply = await app.request("/readyz", {}, { ...env, ...bindings });
    const { status } = await checkReply("get", "/readyz", reply.clone());
    return { status, body: await reply.json<Answer>() };
  };
  return { ask, clock };
}

/** The HTTP status, then the failed checks. */
async function problemsWith(bindings: object) {
  const { status, body } = await (await openPlatform(bindings)).ask();
  return [status, body.status, ...body.checks.flatMap(({ name, ok, problem }) => (ok ? [] : [[name, problem]]))];
}

test("a platform with all that it needs is ready", async () => {
  const { status, body } = await (await openPlatform({})).ask();
  expect(status).toBe(200);
  expect(body).toEqual({
    status: "ready",
    draining_since: null,
    checks: ["secret", "variables", "database", "queues", "bucket"].map((name) => ({ name, ok: true, problem: null })),
  });
});

test.each([undefined, "", "f00d", "g".repeat(64), "A".repeat(64)])(
  "ROLLCALL_SECRET %s is not valid",
  async (secret) => {
    const [status, word, problem] = await problemsWith({ ROLLCALL_SECRET: secret });
    expect([status, word]).toEqual([503, "not_ready"]);
    expect(problem).toEqual(["secret", "ROLLCALL_SECRET must be 64 hex digits: wrangler secret put ROLLCALL_SECRET"]);
  },
);

test("an earlier secret that is not valid is named, and its text is not shown", async () => {
  const [status, , problem] = await problemsWith({ ROLLCALL_SECRETS_BEFORE: "hunter2" });
  expect(status).toBe(503);
  expect(JSON.stringify(problem)).toContain("ROLLCALL_SECRETS_BEFORE must be");
  expect(JSON.stringify(problem)).not.toContain("hunter2");
});

test("a variable that is not a number is named, and one that is missing has its value for a deployment", async () => {
  expect(await problemsWith({ MEMORY_BUDGET_MIB: undefined, ROLLOUT_CHARACTERS: "many" })).toEqual([
    503,
    "not_ready",
    ["variables", "not a number above 0: ROLLOUT_CHARACTERS"],
  ]);
});

test("a database with a newer migration, and one without any, are named", async () => {
  await env.DB.prepare("insert into d1_migrations (name) values ('9999_later.sql')").run();
  try {
    expect(await problemsWith({})).toEqual([
      503,
      "not_ready",
      ["database", expect.stringMatching(/^its newest migration is 9999_later\.sql, but this release needs \d{4}_/)],
    ]);
  } finally {
    await env.DB.prepare("delete from d1_migrations where name = '9999_later.sql'").run();
  }
  await env.DB.prepare("alter table d1_migrations rename to moved_away").run();
  try {
    const [, , problem] = await problemsWith({});
    expect(problem).toEqual(["database", expect.stringMatching(/^its newest migration is none, /)]);
  } finally {
    await env.DB.prepare("alter table moved_away rename to d1_migrations").run();
  }
  expect(await problemsWith({})).toEqual([200, "ready"]);
});

test("every queue and store that is not bound is named", async () => {
  expect(await problemsWith({ ROLLOUT_JUDGEMENTS_SLOW_2: undefined, RUN_SEGMENTS: undefined })).toEqual([
    503,
    "not_ready",
    ["queues", "not bound: ROLLOUT_JUDGEMENTS_SLOW_2, RUN_SEGMENTS"],
  ]);
  expect(await problemsWith({ DB: undefined, STORE: undefined })).toEqual([
    503,
    "not_ready",
    ["database", "DB is not bound"],
    ["bucket", "STORE is not bound"],
  ]);
});

test("a store that fails is named without the text of its error", async () => {
  const fail = () => {
    throw new Error("the store is away");
  };
  expect(await problemsWith({ DB: { prepare: fail }, STORE: { head: async () => fail() } })).toEqual([
    503,
    "not_ready",
    ["database", "D1 does not answer"],
    ["bucket", "R2 does not answer"],
  ]);
});

test("a store that does not answer in time fails its check", async () => {
  const { promise: never } = Promise.withResolvers<never>();
  const { checks: found } = await checkReadiness(
    { ...env, STORE: new Proxy(env.STORE, { get: () => () => never }) },
    1,
  );
  expect(found.find(({ name }) => name === "bucket")).toEqual({ name: "bucket", problem: "R2 does not answer" });
});

test("however often it is asked, the stores are read once in five seconds", async () => {
  let reads = 0;
  const head = async () => {
    reads += 1;
    return null;
  };
  const { ask, clock } = await openPlatform({ STORE: { head } });
  await ask();
  clock.now += 4999;
  for (let times = 0; times < 50; times += 1) await ask();
  expect(reads).toBe(1);
  clock.now += 1;
  await ask();
  expect(reads).toBe(2);
});
