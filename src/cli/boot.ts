/** Boots a platform in this process. Miniflare and wrangler are loaded only here: they take a second. */
import { DirectoryUnusable } from "../local/directory-unusable.ts";
import { type EnvironmentPackage, NoEnvironmentPackage } from "../local/environment-package.ts";
import type { Platform } from "../local/platform.ts";
import { CommandError, EXIT, endBy } from "./exit.ts";

export interface BootOptions {
  /** Null for a platform that keeps nothing. */
  readonly directory: string | null;
  /** Held beside those that come with Rollcall. */
  readonly environments?: readonly EnvironmentPackage[];
  readonly port?: number | undefined;
  /** Where its store is to be. */
  readonly store?: "disk" | "memory" | undefined;
  /** For a command that only reads: nothing is played, and nobody else finds it. */
  readonly atRest?: boolean | undefined;
  /** Ends the boot when Ctrl-C or the time of --timeout aborts it. */
  readonly signal?: AbortSignal;
  readonly say: (line: string) => void;
}

export async function boot(options: BootOptions): Promise<Platform> {
  const { bootPlatform } = await import("../local/platform.ts");
  const { DirectoryInUse } = await import("../local/directory-lock.ts");
  try {
    return await bootPlatform(options);
  } catch (error) {
    if (options.signal?.aborted) throw endBy(options.signal);
    // The environment is at fault, or the disk, not the platform.
    if (error instanceof NoEnvironmentPackage || error instanceof DirectoryUnusable) throw error;
    const inUse = error instanceof DirectoryInUse;
    throw new CommandError(EXIT.unreachable, {
      code: inUse ? "in_use" : "boot_failed",
      message: error instanceof Error ? error.message : String(error),
      type: "platform_error",
    });
  }
}
