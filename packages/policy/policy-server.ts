/**
 * Runs the policy server inside a process, in its own thread, so that sampling never blocks the process's event loop.
 * It ends with the process.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import * as z from "zod";
import type { ServingOptionsInput } from "./request-schemas.ts";
import { BASE_WEIGHTS_FILE } from "./weights.ts";

/** The name of the policy's weights before training. */
const BASE_VERSION = "base";

export interface PolicyServerOptions {
  /** 0 or absent: any free port. If the port is in use, any free port is used. */
  readonly port?: number;
  /** The seed for requests without one; random if absent. */
  readonly seed?: number;
  /** Settings that harm training, for tests; none by default. */
  readonly serving?: ServingOptionsInput;
  /** Called if the server dies after it began to listen. */
  readonly onLost?: (reason: unknown) => void;
}

export interface PolicyServer {
  /** Up to and including /v1. */
  readonly url: string;
  readonly port: number;
  /** Clients that wait for an answer see the connection close. */
  stop(): Promise<void>;
}

const Ready = z.tuple([z.object({ port: z.int() })]);

/** Next to this file, with the extension `.js` if this file was compiled. */
const THREAD = join(import.meta.dirname, `thread${extname(import.meta.filename)}`);

/** Resolves when it listens. Rejects with the error that prevented the start. */
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

/** Sets a policy server back to the weights that come with Rollcall. `policyUrl` includes /v1. */
export async function serveBaseWeights(policyUrl: string): Promise<void> {
  await serveWeights(policyUrl, BASE_VERSION, readFileSync(BASE_WEIGHTS_FILE));
}

/** `bytes`: as in the file of the weights that come with Rollcall (weights.ts). Throws if the server refuses them. */
export async function serveWeights(policyUrl: string, version: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const reply = await fetch(new URL("/update_weights", policyUrl), {
    method: "POST",
    headers: { "x-weight-version": version, "content-type": "application/octet-stream" },
    body: bytes,
  });
  if (!reply.ok) throw new Error(`the policy refuses weights: ${reply.status} ${await reply.text()}`);
  await reply.body?.cancel();
}
