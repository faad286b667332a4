/**
 * The npm package of a published environment: what its package.json must say, and the file with the code that is played.
 * `rollcall env publish` makes it, `npm publish` may send it, and the platform reads it.
 */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";
import { PublishedName } from "../contract/published-environment.ts";
import { ShownText } from "../contract/shown-text.ts";
import { exactVersion } from "./version-names.ts";

/** One ES module with the environment, its packages and its copy of the library (src/local/environment-bundle.ts). */
export const CODE_FILE = "rollcall-environment.js";
/** Rows for an environment that has none of its own: it is validated with them. */
export const EXAMPLES_FILE = "examples.jsonl";
/** npm puts every file of a package below it. */
export const PACKAGE_FOLDER = "package/";

const Line = ShownText.max(LIMITS.publishedReasonCharacters);

export const PackageManifest = z.object({
  name: z
    .string()
    .transform((name) => name.replace(/^@/, ""))
    .pipe(PublishedName),
  version: z
    .string()
    .max(LIMITS.publishedNameCharacters)
    .refine((version) => exactVersion(version) !== null, { error: "must be a version such as 1.2.0" }),
  description: Line.optional(),
  license: Line.optional(),
  repository: z.union([Line, z.object({ url: Line }).transform(({ url }) => url)]).optional(),
  rollcall: z
    .object({
      commit: Line.optional(),
      builder: Line.optional(),
      /** Arguments with which it is validated. */
      args: z.record(z.string(), z.unknown()).optional(),
    })
    .optional(),
});
export type PackageManifest = z.output<typeof PackageManifest>;
