/** The settings of a run whose rollouts are played by an agent: a program of its own that calls the rollout's address. */
import * as z from "zod";
import { Positive } from "./primitives.ts";

export const AgentName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, {
    error: "must be 1 to 63 of a-z, 0-9, dot, underscore and hyphen, and begin with a letter or digit",
  })
  .meta({ example: "my-agent" });

const DAY_S = 86_400;

export const AgentSettings = z.strictObject({
  name: AgentName.describe("workers that lease rollouts of this name play them"),
  sampling: z
    .enum(["keep", "override"])
    .default("keep")
    .describe(
      "keep: what a call asks for is merged over the run's sampling; override: only the run's sampling is used. A training run overrides",
    ),
  lease_s: z.int().min(5).max(DAY_S).default(60).describe("a lease without a heartbeat expires after this"),
  max_leases: Positive.max(20)
    .default(3)
    .describe("how many workers may lose a rollout before it ends as failed: agent"),
  max_turns: Positive.max(10_000).default(1000).describe("model calls of one rollout; further ones are refused"),
  queue_timeout_s: Positive.max(7 * DAY_S)
    .default(DAY_S)
    .describe("a rollout that no worker has leased after this ends as failed: agent"),
});
export type AgentSettings = z.output<typeof AgentSettings>;

/** Seconds that an agent has for one rollout, from its first lease, unless the run sets `rollout_timeout_s`. */
export const AGENT_TIMEOUT_S = 3600;
