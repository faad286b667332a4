/**
 * The package of this Rollcall itself among the assets of a deployment, which serves it to npm clients. Commands put it
 * there (src/local/assets.ts), and the hub reads it (src/hub/npm-library.ts).
 */
import * as z from "zod";

/** The folder of the assets that has the two files. No address leads to it: the Worker answers all but `/assets/`. */
export const LIBRARY_FOLDER = "library";
export const LIBRARY_TARBALL = "library.tgz";
export const LIBRARY_LISTING = "library.json";

/** What the listing has; null if there is no package. */
export const LibraryListing = z
  .object({
    /** package.json of the package. */
    manifest: z.looseObject({
      name: z.string(),
      version: z.string(),
      description: z.string().optional(),
      scripts: z.record(z.string(), z.unknown()).optional(),
    }),
    /** SHA-512 of the tarball, as npm writes it. */
    integrity: z.string(),
    /** SHA-1 of the tarball in hexadecimal. */
    shasum: z.string(),
    /** Epoch milliseconds. */
    made_at: z.number(),
  })
  .nullable();
export type LibraryListing = NonNullable<z.output<typeof LibraryListing>>;
