/** The environments of registry.ts, with the versions and digests that `npm run generate` read from the packages. */
import type { AnyEnvironment, Need } from "rollcall";
import type * as z from "zod";
import { DIGESTS, VERSIONS } from "./digests.ts";
import * as loaders from "./registry.ts";

export interface RegisteredEnvironment {
  readonly id: string;
  /** The version in its package.json. */
  readonly version: string;
  /** The digest of its code; `npm run check` fails if it is stale. */
  readonly digest: string;
  readonly args: z.ZodObject;
  readonly needs: readonly Need[];
  /** Rejects with a ZodError if the arguments do not match `args`. */
  readonly load: (args: unknown) => Promise<AnyEnvironment>;
}

/** Sorted by name. */
export const ENVIRONMENTS: readonly RegisteredEnvironment[] = Object.entries(loaders)
  .map(([id, { args, needs, load }]) => ({
    ...{ id, version: VERSIONS[id] ?? "", digest: DIGESTS[id] ?? "" },
    ...{ args, needs, load },
  }))
  .sort((a, b) => (a.id < b.id ? -1 : 1));
