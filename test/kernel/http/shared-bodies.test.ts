/** Slow bodies, and others from the same address: requests without a key share memory by address. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { refuse } from "../../../src/kernel/messages/refusal.ts";
import { useMemory } from "../memory-budget.ts";
import { openTestApi } from "./test-api.ts";

/** The part of bodies, in bytes. */
const TOTAL = 24 * LIMITS.requestBodyBytes;
useMemory(24 * TOTAL);

/** A body that stops in the middle until it is ended. */
function stalled(bytes: number) {
  const asked = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  let sent = false;
  const body = new ReadableStream({
    type: "bytes",
    async pull(controller) {
      if (!sent) {
        sent = true;
        controller.enqueue(new Uint8Array(bytes).fill(0x20));
        return;
      }
      asked.resolve();
      await over.promise;
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
  return { body, held: asked.promise, end: over.resolve };
}

test("a small body does not wait for large ones from the same address that have stopped", async () => {
  const { app } = await openTestApi(
    {},
    { accounts: { acceptInvitation: async () => refuse("not_found", "there is none", "token") } },
  );
  const headers = { "content-type": "application/json", "cf-connecting-ip": "192.0.2.71" };
  const send = (body: BodyInit) =>
    app.request("http://platform.test/v1/invitations/accept", { method: "POST", headers, body }, env);
  const half = TOTAL / 2;
  const slow = Array.from({ length: half / LIMITS.requestBodyBytes }, () => stalled(LIMITS.requestBodyBytes * 0.75));
  const answers = slow.map(({ body }) => send(body));
  await Promise.all(slow.map(({ held }) => held));
  const small = await send(JSON.stringify({ token: "rki_none" }));
  for (const { end } of slow) end();
  await Promise.all(answers);
  expect(small.status).toBe(404);
});
