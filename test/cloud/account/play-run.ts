/** A run of the deployed platform against the model of the probe Worker. */
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Bench } from "./bench.ts";

export const PlayedRun = z.object({
  status: z.string(),
  scored: z.number(),
  failed: z.record(z.string(), z.number()),
  seconds: z.number(),
});
export type PlayedRun = z.infer<typeof PlayedRun>;

/** Rollouts at once: those of two objects. */
const MAX_CONCURRENT = 2 * LIMITS.rolloutsPerShard;

/** Follows the run to its end. */
export async function playRun(
  { product: { client }, probe, sizes, signal }: Bench,
  { environment, rollouts }: { readonly environment: string; readonly rollouts: number },
): Promise<PlayedRun> {
  const from = performance.now();
  const { id } = await client.runs.create(
    {
      environment,
      model: `probe-${sizes.turnS}`,
      endpoint: { base_url: new URL("/v1", probe.url).href, api_key: probe.token },
      num_examples: rollouts,
      max_concurrent: MAX_CONCURRENT,
      min_scored: 0,
    },
    { signal },
  );
  for await (const _event of client.runs.events(id, { signal }));
  const { status, counts } = await client.runs.get(id, { signal });
  const seconds = Math.round((performance.now() - from) / 100) / 10;
  return { status, scored: counts.scored, failed: counts.failed, seconds };
}
