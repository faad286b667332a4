/**
 * Every test file in workerd starts with a database of the current schema, and leaves the bindings, which all files of a
 * worker share, as it found them. Its requests wait for no pace.
 */
import { applyD1Migrations } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll } from "vitest";
import { PROCESS_PACE } from "../../src/kernel/kit/request-pace.ts";

await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);

// Files share a process, and each is an organisation or several: they would wait for one another. Another test has it back.
PROCESS_PACE.enter = () => 0;

const found = new Map<string, unknown>(Object.entries(env));
afterAll(() => {
  const left = new Map<string, unknown>(Object.entries(env));
  const names = new Set([...found.keys(), ...left.keys()]);
  const changed = [...names].filter((name) => found.get(name) !== left.get(name));
  if (changed.length > 0) throw new Error(`this file leaves other files another env: ${changed.join(", ")}`);
});
