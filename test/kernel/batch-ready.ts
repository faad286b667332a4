/** Waits for the first batch of a training run. */
import { env } from "cloudflare:workers";
import { runObject } from "../../src/kernel/kit/names.ts";
import type { TestApi } from "./platform.ts";

export async function untilBatchReady(api: TestApi, id: string): Promise<void> {
  const run = runObject(env, api.scope, id);
  for (let after = 0; ; ) {
    const { events = [], ended = true } = (await run.events(after, 10_000)) ?? {};
    if (events.some(({ event }) => event === "batch.ready")) return;
    if (ended) throw new Error(`${id} ended without a batch`);
    after = events.at(-1)?.id ?? after;
  }
}
