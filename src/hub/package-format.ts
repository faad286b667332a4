/**
 * What the package.json of a published environment must say. `rollcall env publish` makes the npm package, `npm publish`
 * may send it, and the platform reads it.
 */
import * as z from "zod";
import type { JsonObject } from "../contract/json.ts";
import { LIMITS } from "../contract/limits.ts";
import { PublishedName } from "../contract/published-environment.ts";
import { ShownText } from "../contract/shown-text.ts";
import { exactVersion } from "./version-names.ts";

const Line = ShownText.max(LIMITS.publishedReasonCharacters);

const Versions = z.record(z.string(), z.string());
const Names = z.array(z.string());

/** What an installation by npm depends on. */
const Installed = z.object({
  dependencies: Versions.optional(),
  optionalDependencies: Versions.optional(),
  peerDependencies: Versions.optional(),
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean().optional() })).optional(),
  bundleDependencies: z.union([z.boolean(), Names]).optional(),
  bin: z.union([z.string(), Versions]).optional(),
  engines: Versions.optional(),
  os: Names.optional(),
  cpu: Names.optional(),
  libc: z.union([z.string(), Names]).optional(),
});
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall"];

export const PackageManifest = z.object({
  ...Installed.shape,
  scripts: z.record(z.string(), z.unknown()).optional(),
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

/** The part of a package.json that npm clients read of a version before they download it. */
export function installedPart({ scripts = {}, ...manifest }: Pick<PackageManifest, "scripts">): JsonObject {
  const scripted = INSTALL_SCRIPTS.some((name) => Object.hasOwn(scripts, name));
  return { ...(Installed.parse(manifest) as JsonObject), ...(scripted && { hasInstallScript: true }) };
}
