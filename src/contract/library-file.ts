/**
 * The package of this Rollcall itself among the assets of a deployment, which serves it to npm clients. Commands put it
 * there (src/local/assets.ts), and the hub reads it (src/hub/npm-library.ts).
 */
import * as z from "zod";

/** The folder of both files. It has no public address: only `/assets/` is served without the Worker. */
export const LIBRARY_FOLDER = "library";
export const LIBRARY_TARBALL = "library.tgz";
export const LIBRARY_LISTING = "library.json";

/** The content of library.json. It is null if the deployment has no package. */
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
