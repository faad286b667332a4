/**
 * What the simulation knows about the platform that is not a function of its code: the settings of its queues, from
 * wrangler.toml; Cloudflare's limits; and latencies inside Cloudflare, which are assumed.
 */
import { join } from "node:path";
import { experimental_readRawConfig as readToml } from "wrangler";
import * as z from "zod";
import { CallCosts } from "./call-costs.ts";
import recorded from "./recorded.json" with { type: "json" };

export const COSTS: CallCosts = CallCosts.parse(recorded.calls);

/** Assumed, in milliseconds. */
export const LATENCY_MS = {
  /** A call from one object, or from a consumer, to another object. */
  request: 50,
  r2Read: 100,
  r2Write: 100,
  d1: 50,
  /** From the send of a message to the start of its consumer. */
  queue: 1000,
} as const;
export type Latency = Readonly<Record<keyof typeof LATENCY_MS, number>>;

/** Of a deployment, where no constant of the code says so. */
export const SHAPE = {
  /** D1 databases, with as many organisations in each. A deployment has one unless more were added. */
  databases: 1,
};

/** Of Cloudflare, November 2026. */
export const CLOUDFLARE = {
  /** Requests a second to one object, about. */
  objectRequests: 1000,
  /** A database answers one statement at a time. */
  d1Statements: 1000,
  d1Bytes: 10e9,
  objectBytes: 10e9,
  queueMessages: 5000,
  consumers: 250,
} as const;

const Wrangler = z.object({
  queues: z.object({
    consumers: z.array(
      z.object({
        queue: z.string(),
        max_batch_size: z.int(),
        max_batch_timeout: z.number(),
        max_concurrency: z.int().optional(),
      }),
    ),
  }),
});

export interface QueueSettings {
  readonly batch: number;
  readonly consumers: number;
}

const { rawConfig } = readToml({ config: join(import.meta.dirname, "../../wrangler.toml") });
const CONSUMERS = Wrangler.parse(rawConfig).queues.consumers;

export function queueSettings(name: string): QueueSettings {
  const found = CONSUMERS.find(({ queue }) => queue === name);
  if (found === undefined) throw new Error(`wrangler.toml: no consumer of ${name}`);
  return { batch: found.max_batch_size, consumers: found.max_concurrency ?? CLOUDFLARE.consumers };
}
