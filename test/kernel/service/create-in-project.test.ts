/** Two simultaneous requests with one Idempotency-Key, of which the other one is faster. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { findSecret, insertSecret } from "../../../src/kernel/db/secrets.ts";
import { type Creation, toRemember } from "../../../src/kernel/kit/idempotency.ts";
import { refuse } from "../../../src/kernel/messages/refusal.ts";
import { createInProject } from "../../../src/kernel/service/create-in-project.ts";
import { newSecret } from "../db/cases.ts";
import { openPlatform } from "../platform.ts";

type Secret = ReturnType<typeof newSecret>;

test.each(["taken", "full", "gone"] as const)(
  "a create that finds its place %s by the same request returns what that created",
  async (why) => {
    const { scope } = await openPlatform();
    const faster = newSecret();
    const options = { idempotencyKey: "k", requestHash: "h", now: 2000 };
    const overtaken: Creation<Secret, typeof why> = {
      operation: "createSecret",
      find: (id) => findSecret(databaseOf(env), scope, id),
      make: async () => ({ ok: true, value: newSecret() }),
      async insert() {
        await insertSecret(databaseOf(env), scope, faster, toRemember("createSecret", faster.id, options));
        return why;
      },
      refusals: { taken: refused, full: refused, gone: refused },
    };
    const made = await createInProject(env, scope, options, overtaken);
    expect(made).toMatchObject({ ok: true, value: { replayed: true, value: { id: faster.id } } });
    const other = await createInProject(env, scope, { ...options, requestHash: "another" }, overtaken);
    expect(other).toMatchObject({ ok: false, error: { code: "idempotency_conflict" } });
    const keyless = { ...overtaken, insert: async () => why };
    expect(await createInProject(env, scope, { ...options, idempotencyKey: null }, keyless)).toEqual(refused());
  },
);

function refused() {
  return refuse("conflict", "there is no place", null);
}
