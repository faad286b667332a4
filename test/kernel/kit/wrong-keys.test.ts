import { env } from "cloudflare:workers";
import { expect, test } from "vitest";

test("the binding for wrong keys allows 100 of an address in a minute, and counts each address separately", async () => {
  const passes = async (key: string) => (await env.WRONG_KEYS.limit({ key })).success;
  const flooding = crypto.randomUUID();
  let passed = 0;
  // The minute is that of the clock: if a new one begins meanwhile, it allows another 100.
  while (passed <= 200 && (await passes(flooding))) passed++;
  expect(passed).toBeGreaterThanOrEqual(100);
  expect(passed).toBeLessThanOrEqual(200);
  expect(await passes(crypto.randomUUID())).toBe(true);
});
