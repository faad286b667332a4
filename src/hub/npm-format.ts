/** What npm clients send and read: https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md. */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";
import { AnyObject } from "../contract/primitives.ts";
import { TagName } from "../contract/published-environment.ts";
import { ShownText } from "../contract/shown-text.ts";
import type { RefusalForm } from "../kernel/http/operation.ts";

const NAME = "@alice/guess-word";
const VERSION = "1.0.1";
const DIST = {
  integrity: "sha512-z4PhNX7vuL3xVChQ",
  shasum: "da39a3ee5e6b4b0d3255bfef95601890afd80709",
  tarball: `https://rollcall.example/npm/${NAME}/-/guess-word-${VERSION}.tgz`,
};

/** Before the reason of a yank, as npm shows it. */
export const YANKED = "yanked: ";

/** What `npm publish` and `npm deprecate` send; only this much of it is read. */
export const NpmDocument = z
  .object({
    "dist-tags": z.record(TagName, z.string()).optional(),
    access: z.enum(["public", "restricted"]).nullish(),
    versions: z
      .record(
        z.string(),
        z.object({
          deprecated: ShownText.max(YANKED.length + LIMITS.publishedReasonCharacters).optional(),
          dist: z.object({ integrity: z.string().optional() }).optional(),
        }),
      )
      .describe("package.json of each version"),
    _attachments: z
      .record(z.string(), z.object({ data: z.string().describe("base64") }))
      .optional()
      .describe("the .tgz file; without it, only `deprecated` of versions is changed"),
  })
  .meta({
    example: {
      "dist-tags": { latest: VERSION },
      versions: { [VERSION]: { dist: { integrity: DIST.integrity } } },
      _attachments: { [`${NAME}-${VERSION}.tgz`]: { data: "H4sIAAAA" } },
    },
  });
export type NpmDocument = z.output<typeof NpmDocument>;

const PackumentVersion = z.looseObject({
  name: z.string(),
  version: z.string(),
  deprecated: z.string().optional(),
  dist: z.object({ integrity: z.string(), shasum: z.string().describe("SHA-1"), tarball: z.string() }),
});
export type PackumentVersion = z.output<typeof PackumentVersion>;

const Versions = z.record(z.string(), PackumentVersion);
const Tags = z.record(z.string(), z.string());
const EXAMPLE = {
  "dist-tags": { latest: VERSION },
  versions: { [VERSION]: { name: NAME, version: VERSION, dist: DIST } },
};

const FullPackument = z.object({
  _id: z.string(),
  name: z.string(),
  description: z.string().optional(),
  maintainers: z.array(z.object({ name: z.string(), email: z.string() })).optional(),
  "dist-tags": Tags,
  versions: Versions,
  time: z.record(z.string(), z.string()),
});
export type Packument = z.output<typeof FullPackument>;
const ShortPackument = z.object({ name: z.string(), modified: z.string(), "dist-tags": Tags, versions: Versions });

/** The short one is for `Accept: application/vnd.npm.install-v1+json`. */
export const AnyPackument = z.union([FullPackument, ShortPackument]).meta({
  example: {
    _id: NAME,
    name: NAME,

    ...EXAMPLE,
    time: { created: "2026-11-28T00:00:00.000Z" },
  },
});

export function shortened({ name, "dist-tags": tags, versions, time }: Packument): z.output<typeof ShortPackument> {
  const short = Object.entries(versions).map(([version, { _id, description, ...rest }]) => [version, rest]);
  return { name, modified: time["modified"] ?? "", "dist-tags": tags, versions: Object.fromEntries(short) };
}

export const NpmTags = Tags.meta({ example: { latest: VERSION } });
export const NpmVersionNumber = z.string().max(LIMITS.publishedNameCharacters).meta({ example: VERSION });
export const NpmDone = z.object({ ok: z.literal(true), id: z.string().optional() });
export const NpmUser = z.object({ username: z.string() });
export const NpmPing = AnyObject.meta({ example: {} });

/** What npm clients ask of other registries, with the command to use instead. Paths are below `/npm/`. */
const UNSERVED: readonly { readonly path: RegExp; readonly status: 404 | 405 | 501; readonly message: string }[] = [
  {
    path: /^-\/v1\/search$/,
    status: 404,
    message: "npm cannot search this registry: use `rollcall env search`, or open /environments in a browser",
  },
  {
    path: /^-\/v1\/login$/,
    // After a 4xx npm would ask for a password and send it here.
    status: 501,
    message: "npm cannot log in to this registry: write //HOST/npm/:_authToken=KEY in .npmrc, with an API key",
  },
  {
    path: /^-\/(user\/|npm\/v1\/(user|tokens)\b)/,
    status: 404,
    message: "this registry has no users: owners are organisations, and `rollcall key` creates and lists API keys",
  },
  {
    path: /^-\/npm\/v1\/security\//,
    status: 404,
    message: "this registry lists no vulnerabilities: npm audit works with the registry of your other packages",
  },
  {
    path: /\/-rev\/[^/]*$/,
    // npm unpublish takes a 404 for a success.
    status: 405,
    message: "a published version cannot be deleted, because runs refer to it: use `rollcall env yank` instead",
  },
];

/** npm prints `error` only if it is a text. */
export const NPM_REFUSALS: RefusalForm = {
  schema: z.object({ error: z.string() }),
  bodyOf: ({ message }) => ({ error: message }),
  unserved: (path) => UNSERVED.find((one) => one.path.test(path.slice("/npm/".length))) ?? null,
};
