/** What the questions of the account test measure with: the probe Worker, Cloudflare's API and the deployed platform. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import type { CloudflareAccount } from "../../../src/local/cloudflare/account.ts";
import type { CloudflareApi } from "../../../src/local/cloudflare/api.ts";
import type { PlacedDeployment, RawConfig } from "../../../src/local/deployment-config.ts";
import type { RollcallClient } from "../../../src/sdk/client.ts";

/** Seconds, counts and sizes of the probes. */
export interface Sizes {
  /** Silence before a reply: less than the platform's limit, and more than that of Cloudflare's proxy. */
  readonly silentS: readonly [short: number, long: number];
  readonly streamS: number;
  readonly streamEveryS: number;
  /** How long six calls are held while a seventh is made. */
  readonly heldS: number;
  readonly alarms: number;
  readonly alarmAfterMs: number;
  readonly messages: number;
  readonly queueLimitS: number;
  readonly partMib: number;
  /** Bodies of requests, in MB: one below and one above the limit. */
  readonly bodiesMb: readonly [below: number, above: number];
  /** Values of calls between objects, in MiB: one below and one above the limit. */
  readonly valuesMib: readonly [below: number, above: number];
  readonly memoryMib: number;
  /** Queries to D1 at once, and the seconds of CPU of each, about. */
  readonly queries: number;
  readonly queryS: number;
  readonly redeployedS: number;
  readonly rollouts: number;
  readonly turnS: number;
  readonly analyticsEveryS: number;
  readonly analyticsLimitS: number;
}

export const FULL: Sizes = {
  silentS: [90, 150],
  streamS: 300,
  streamEveryS: 10,
  heldS: 6,
  alarms: 100,
  alarmAfterMs: 5000,
  messages: 300,
  queueLimitS: 120,
  partMib: 20,
  bodiesMb: [95, 105],
  valuesMib: [31, 33],
  memoryMib: 400,
  queries: 150,
  queryS: 1,
  redeployedS: 60,
  rollouts: 60,
  turnS: 3,
  analyticsEveryS: 60,
  analyticsLimitS: 900,
};

/** For trying the command itself: it answers nothing about an account. */
export const SHORT: Sizes = {
  ...{ silentS: [0.1, 0.2], streamS: 0.3, streamEveryS: 0.1, heldS: 1 },
  ...{ alarms: 3, alarmAfterMs: 50, messages: 5, queueLimitS: 20, partMib: 5 },
  ...{ bodiesMb: [1, 2], valuesMib: [1, 33], memoryMib: 16, queries: 3, queryS: 0.01, redeployedS: 0.2 },
  ...{ rollouts: 4, turnS: 0.05, analyticsEveryS: 0.05, analyticsLimitS: 0.2 },
};

export interface Bench {
  readonly sizes: Sizes;
  readonly api: CloudflareApi;
  readonly account: CloudflareAccount;
  /** The release's wrangler.toml. */
  readonly released: RawConfig;
  readonly product: { readonly record: PlacedDeployment; readonly client: RollcallClient };
  readonly probe: ProbeWorker;
  /** The server that silent and streamed calls go to, and whether it is the probe Worker itself. */
  readonly peer: { readonly origin: string; readonly isWorker: boolean };
  /** Uploads the probe Worker again. */
  readonly redeploy: () => Promise<void>;
  /** The buckets and the queue of the probe Worker. */
  readonly names: { readonly bucket: string; readonly databaseId: string };
  readonly graphql: (query: string, variables: object) => Promise<unknown>;
  readonly signal: AbortSignal;
}

const POLL_MS = 500;

export class ProbeWorker {
  readonly url: string;
  readonly token: string;
  readonly #signal: AbortSignal;

  constructor(url: string, token: string, signal: AbortSignal) {
    this.url = url;
    this.token = token;
    this.#signal = signal;
  }

  send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${this.token}` };
    return fetch(new URL(path, this.url), { ...init, headers, signal: this.#signal });
  }

  /** Plays one probe, and returns its result. `limitS`: how long it may take. */
  async play(job: { readonly probe: string; readonly [size: string]: unknown }, limitS: number): Promise<unknown> {
    const path = `/probes/${job.probe}-${randomUUID().slice(0, 8)}`;
    const until = performance.now() + limitS * 1000;
    for (let started = false; ; started = true) {
      const reply = await this.send(path, started ? {} : { method: "POST", body: JSON.stringify(job) });
      const text = await reply.text();
      if (!reply.ok) throw new Error(`the probe ${job.probe} got ${reply.status}: ${text.slice(0, 300)}`);
      const done = Done.parse(JSON.parse(text));
      if (done !== null) return done.result;
      if (performance.now() > until) throw new Error(`the probe ${job.probe} did not end within ${limitS} s`);
      await sleep(POLL_MS, undefined, { signal: this.#signal });
    }
  }
}

const Done = z.object({ result: z.unknown() }).nullable();

/** An error as the probe Worker saw it. */
export const ErrorSeen = z.object({
  name: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  overloaded: z.boolean(),
});
export type ErrorSeen = z.infer<typeof ErrorSeen>;
