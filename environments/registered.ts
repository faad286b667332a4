/** What registry.ts lists, with the versions and digests that `npm run generate` read from the packages. */
import type { AnyEnvironment, Need } from "rollcall";
import type * as z from "zod";
import { DIGESTS, VERSIONS } from "./digests.ts";
import * as loaders from "./registry.ts";

export interface RegisteredEnvironment {
  readonly id: string;
  /** As in the package.json beside it. */
  readonly version: string;
  /** Of its code; stale while `npm run check` says so. */
  readonly digest: string;
  readonly args: z.ZodObject;
  readonly needs: readonly Need[];
  /** Rejects with a ZodError when the arguments do not fit `args`. */
  readonly load: (args: unknown) => Promise<AnyEnvironment>;
}

/** In order of name. */
export const ENVIRONMENTS: readonly RegisteredEnvironment[] = Object.entries(loaders)
  .map(([id, { args, needs, load }]) => ({
    ...{ id, version: VERSIONS[id] ?? "", digest: DIGESTS[id] ?? "" },
    ...{ args, needs, load },
  }))
  .sort((a, b) => (a.id < b.id ? -1 : 1));
