/**
 * Gives every test file in workerd two D1 databases of the current schema, and restores the bindings afterwards, because all
 * files of a worker share them. Requests of tests are not paced.
 */
import { applyD1Migrations } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll } from "vitest";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { PROCESS_PACE } from "../../src/kernel/kit/request-pace.ts";

for (const d1 of databaseOf(env).all) await applyD1Migrations(d1, env.TEST_MIGRATIONS);

// Files share a process, and each uses one organisation or more, so paced requests would wait. One test restores the
// pace.
PROCESS_PACE.enter = () => 0;

const found = new Map<string, unknown>(Object.entries(env));
afterAll(() => {
  const left = new Map<string, unknown>(Object.entries(env));
  const names = new Set([...found.keys(), ...left.keys()]);
  const changed = [...names].filter((name) => found.get(name) !== left.get(name));
  if (changed.length > 0) throw new Error(`this file leaves other files another env: ${changed.join(", ")}`);
});
