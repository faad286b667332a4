/**
 * The policy server as a part of a process: it runs in a thread of its own, so that sampling never holds up the
 * process's loop, and it ends with the process.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import * as z from "zod";
import type { ServingOptionsInput } from "./request-schemas.ts";
import { BASE_WEIGHTS_FILE } from "./weights.ts";

/** What the policy is called before it was trained. */
const BASE_VERSION = "base";

export interface PolicyServerOptions {
  /** 0 or absent: any free port. A busy port falls back to any free one. */
  readonly port?: number;
  /** Of requests that name no seed; absent: random. */
  readonly seed?: number;
  /** Settings that do harm to training; absent: none does. */
  readonly serving?: ServingOptionsInput;
  /** Called if the server dies by itself after it began to listen. */
  readonly onLost?: (reason: unknown) => void;
}

export interface PolicyServer {
  /** Up to and including /v1. */
  readonly url: string;
  readonly port: number;
  /** Whoever waits for an answer sees the connection close. */
  stop(): Promise<void>;
}

const Ready = z.tuple([z.object({ port: z.int() })]);

/** Beside this file, and a `.js` where this file was compiled to one. */
const THREAD = join(import.meta.dirname, `thread${extname(import.meta.filename)}`);

/** Resolves when it listens. Rejects with what kept it from starting. */
export async function startPolicyServer(options: PolicyServerOptions = {}): Promise<PolicyServer> {
  const { port: wanted = 0, seed, serving, onLost } = options;
  const worker = new Worker(THREAD, { workerData: { port: wanted, seed, serving } });
  let listens = false;
  worker.on("error", (reason) => {
    if (listens) onLost?.(reason);
  });
  const [{ port }] = Ready.parse(await once(worker, "message"));
  listens = true;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    stop: async () => {
      await worker.terminate();
    },
  };
}

/** Makes a policy server sample by the weights that come with Rollcall. `policyUrl` goes up to and including /v1. */
export async function serveBaseWeights(policyUrl: string): Promise<void> {
  const reply = await fetch(new URL("/update_weights", policyUrl), {
    method: "POST",
    headers: { "x-weight-version": BASE_VERSION, "content-type": "application/octet-stream" },
    body: readFileSync(BASE_WEIGHTS_FILE),
  });
  if (!reply.ok) throw new Error(`the policy refuses weights: ${reply.status} ${await reply.text()}`);
  await reply.body?.cancel();
}
