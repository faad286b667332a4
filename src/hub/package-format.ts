/**
 * What the package.json of a published environment must say. `rollcall env publish` makes the npm package, `npm publish`
 * may send it, and the platform reads it.
 */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";
import { PublishedName } from "../contract/published-environment.ts";
import { ShownText } from "../contract/shown-text.ts";
import { exactVersion } from "./version-names.ts";

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
