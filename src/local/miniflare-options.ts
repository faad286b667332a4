/**
 * wrangler.toml is the only list of bindings; Miniflare's options are made from it by wrangler itself
 * (worker-options.ts). Nothing here
 * names a binding but the three values a deployment gets from its operator, and one that no deployment has: LAST_END.
 */
import { dirname } from "node:path";
import { convertV4MiniflareOptions, type Log, type MiniflareOptions, Response } from "miniflare";
import type { Deaths } from "./last-deaths.ts";
import { readWorkerOptions } from "./worker-options.ts";

interface LocalRuntime {
  /** The folder of wrangler.toml. */
  readonly root: string;
  readonly bundle: string;
  /** Where objects, D1 and R2 are kept. */
  readonly store: string;
  readonly port: number;
  /** Values for this machine: secrets, and variables that stand in wrangler.toml with a deployment's value. */
  readonly bindings: Readonly<Record<string, string | number>>;
  /** How the workerds before the one that asks ended; answered when work that may have ended them may go on. */
  readonly lastEnd: () => Promise<Deaths>;
  readonly log: Log;
  /** What the Worker printed, line by line. */
  readonly onOutput: (line: string) => void;
  /** Miniflare starts a workerd that died again by itself, on the same port; then it calls this. */
  readonly onRestart: () => Promise<void>;
}

export async function miniflareOptions(runtime: LocalRuntime): Promise<MiniflareOptions> {
  const workerOptions = await readWorkerOptions(runtime.root, dirname(runtime.bundle));
  // The bundle is one module: the rules for loading others have nothing left to apply to.
  const { modulesRules: _, ...worker } = workerOptions;
  return convertV4MiniflareOptions({
    ...worker,
    modules: [{ type: "ESModule", path: runtime.bundle }],
    modulesRoot: dirname(runtime.bundle),
    bindings: { ...Object(worker["bindings"]), ...runtime.bindings },
    serviceBindings: {
      ...Object(worker["serviceBindings"]),
      LAST_END: async () => Response.json(await runtime.lastEnd()),
    },
    host: "127.0.0.1",
    port: runtime.port,
    resourcePersistencePath: runtime.store,
    // Without this Miniflare asks a server of Cloudflare's for the properties of a request.
    cf: false,
    log: runtime.log,
    // Retiring a finished object is how its descriptors are freed, and the runtime calls that broken.
    handleStructuredLogs: ({ message }) => {
      if (!/jsg\.Error: retired/.test(message)) runtime.onOutput(message);
    },
    unsafeHandleRuntimeRestart: runtime.onRestart,
  });
}
