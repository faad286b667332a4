/** Offers that the platform pushes to the trainer, over real sockets. */

import { receiveBatches } from "@rollcall/trainer/batches";
import { afterAll, expect, test } from "vitest";
import type { BatchManifest, BatchOffer } from "../../../src/contract/trainer-wire.ts";
import { signedHeaders } from "../../../src/kernel/kit/sign-webhook.ts";

const SECRET = "whsec_c2VjcmV0IG9mIGEgdGVzdA==";
const NOW = 1_795_302_000_000;
const WHO = { trainer_id: "t", epoch: 2 };

const manifest = { step: 7 } as BatchManifest;
const batches = await receiveBatches({
  port: 0,
  secret: SECRET,
  client: { manifest: async () => manifest },
  now: () => NOW,
});
afterAll(() => batches.close());

async function offer(step: number, { epoch = 2, attempt = 1, at = NOW, secret = SECRET } = {}) {
  const lease = { id: `ls_${step}_${attempt}`, token: "x", expires_at: 1_795_302_900, attempt };
  const batch_id = `bat_${step}`;
  const data = { run_id: "run_1", batch_id, step, epoch, lease, manifest_url: "u", base_url: "u" };
  const body: BatchOffer = { type: "trainer.batch.offer", timestamp: "t", data };
  const text = JSON.stringify(body);
  const headers = signedHeaders(secret, `msg_${batch_id}_${attempt}`, text, at);
  const reply = await fetch(`http://127.0.0.1:${batches.port}`, { method: "POST", headers, body: text });
  return [reply.status, await reply.json()];
}

test("an offer of the awaited step is accepted, and accepted again if it is repeated", async () => {
  const next = batches.next(WHO, 7, new AbortController().signal);
  expect(await offer(7)).toEqual([202, {}]);
  expect(await next).toMatchObject({ manifest, lease: { id: "ls_7_1" } });
  expect(await offer(7)).toEqual([202, {}]);
});

test("while a batch trains, another is refused as busy", async () => {
  expect(await offer(8)).toEqual([429, {}]);
});

test("a step that is not the next and an epoch that is over are refused with the current step", async () => {
  const stop = new AbortController();
  const next = batches.next(WHO, 9, stop.signal);
  expect(await offer(8)).toEqual([409, { code: "step_mismatch", next_step: 9 }]);
  expect(await offer(9, { epoch: 1 })).toEqual([409, { code: "epoch_fenced" }]);
  stop.abort();
  await expect(next).rejects.toThrow();
});

test("an offer with a wrong signature or an old one is ignored", async () => {
  expect((await offer(9, { secret: "another" }))[0]).toBe(401);
  expect((await offer(9, { at: NOW - 301_000 }))[0]).toBe(401);
});
