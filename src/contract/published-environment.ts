/** Environments that organisations publish: their names, and one version as the API shows it. */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import { AnyObject, Count, EXAMPLE, listOf, MaybeText, named, namedInput, Seconds } from "./primitives.ts";
import { ShownText } from "./shown-text.ts";

const OWNER = "[a-z0-9](?:[a-z0-9._-]{0,36}[a-z0-9])?";
const NAME_PART = "[a-z0-9](?:[a-z0-9._-]{0,58}[a-z0-9])?";
/** `owner/name`, at most 38 and 60 characters. npm and Python accept the same names. */
export const PublishedName = z.string().regex(new RegExp(`^${OWNER}/${NAME_PART}$`), {
  error: "must be owner/name: lower-case letters, digits, dots, dashes and underscores, at most 38 and 60 of them",
});

export const PublishedOwner = z
  .string()
  .regex(new RegExp(`^${OWNER}$`), {
    error: "must be at most 38 lower-case letters, digits, dots, dashes and underscores",
  })
  .meta({ example: "alice" });

/** Names that differ only in this way are the same name. */
export function nameKeyOf(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, "-");
}

/**
 * Who can use it. `private`: the project that published it. `organisation`: every project of its organisation. `public`:
 * everybody who can reach the platform.
 */
export const VISIBILITIES = ["private", "organisation", "public"] as const;
export const Visibility = z.enum(VISIBILITIES);
export type Visibility = z.infer<typeof Visibility>;

/** `javascript`: the platform plays it. `python`: a wheel, which the platform cannot play itself. */
export const EnvironmentKind = z.enum(["javascript", "python"]);
export type EnvironmentKind = z.infer<typeof EnvironmentKind>;

const Noted = z.object({ reason: z.string(), at: Seconds });
const NAME = "alice/guess-word";

export const PublishedVersion = named("PublishedVersion", {
  object: z.literal("published_version"),
  id: z.string().meta({ example: `${NAME}@1.0.1` }),
  name: z.string().meta({ example: NAME }),
  version: z.string().meta({ example: "1.0.1" }),
  kind: EnvironmentKind.describe("`python`: a wheel, which the platform cannot play itself").meta({
    example: "javascript",
  }),
  digest: z
    .string()
    .describe("of the code that is played, or of the wheel: runs pin it")
    .meta({ example: "sha256:9f86d081884c7d65" }),
  visibility: Visibility.meta({ example: "public" }),
  description: MaybeText,
  license: MaybeText.meta({ example: "MIT" }),
  tags: z
    .array(z.string())
    .describe("tags that point to this version")
    .meta({ example: ["latest"] }),
  package: z
    .object({
      bytes: Count,
      integrity: z
        .string()
        .describe("SHA-512 of the package, as npm writes it")
        .meta({ example: "sha512-z4PhNX7vuL3xVChQ" }),
      file: z
        .string()
        .optional()
        .describe("file name of a wheel")
        .meta({ example: "guess_word-1.0.1-py3-none-any.whl" }),
    })
    .describe("the npm package or the wheel that was published"),
  protocol: Count.nullable()
    .describe("version of the interface between platform and environment code; null for a wheel")
    .meta({ example: 1 }),
  provenance: z
    .object({ repository: MaybeText, commit: MaybeText, builder: MaybeText })
    .describe("where it was built, as its publisher says")
    .meta({
      example: { repository: "https://github.com/alice/guess-word", commit: "6113728f", builder: "rollcall 0.2.0" },
    }),
  validation: AnyObject.describe("what happened when simple policies played it before it was published").meta({
    example: { ok: true, checks: [], policies: {} },
  }),
  yanked: Noted.nullable().describe("ranges and tags skip it; a run that names it exactly is accepted"),
  deprecated: MaybeText.describe("what to use instead"),
  taken_down: Noted.nullable().describe("the operator deleted its code: no new run can use it"),
  created_by: z.string().meta({ example: EXAMPLE.key }),
  created_at: Seconds,
});
export type PublishedVersion = z.infer<typeof PublishedVersion>;
export const PublishedVersionList = listOf(PublishedVersion, "PublishedVersionList", `${NAME}@1.0.1`);

const Reason = ShownText.min(1).max(LIMITS.publishedReasonCharacters);

/** Only the given fields change. */
export const PublishedVersionPatch = namedInput("PublishedVersionPatch", {
  yanked: z
    .object({ reason: Reason })
    .nullable()
    .optional()
    .describe("ranges and tags skip a yanked version; null undoes it")
    .meta({ example: { reason: "its reward counts a wrong answer" } }),
  deprecated: Reason.nullable().optional().describe("what to use instead; null undoes it"),
});
export type PublishedVersionPatch = z.output<typeof PublishedVersionPatch>;

/** It must not look like a version or a range. */
export const TagName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,38}$/, { error: "must be a lower-case letter, and then letters, digits and dashes" })
  .refine((tag) => !/^[vx]$/.test(tag) && !/^v\d/.test(tag), { error: "must not look like a version" })
  .meta({ example: "beta" });

export const TakeDownRequest = namedInput("TakeDownRequest", {
  reason: Reason.meta({ example: "it is malware" }),
});

export const TagRequest = namedInput("TagRequest", {
  version: z.string().max(LIMITS.publishedNameCharacters).meta({ example: "1.0.1" }),
});

export const TagView = named("EnvironmentTag", {
  object: z.literal("environment_tag"),
  id: z.string().meta({ example: "latest" }),
  name: z.string().meta({ example: NAME }),
  version: z.string().meta({ example: "1.0.1" }),
});

export type TagView = z.infer<typeof TagView>;

export const GrantRequest = namedInput("GrantRequest", {
  needs: z
    .array(z.string().min(1).max(2048))
    .max(LIMITS.grantedNeeds)
    .describe("secrets and hosts that the environment may use, as it declares them; an empty list takes all back")
    .meta({ example: ["secret:SEARCH_KEY", "fetch:https://api.example.com/"] }),
});

export const GrantView = named("EnvironmentGrant", {
  object: z.literal("environment_grant"),
  id: z.string().meta({ example: NAME }),
  own: z.boolean().describe("true if it belongs to the caller's organisation: then nothing must be granted"),
  needs: z.array(z.string()).meta({ example: ["secret:SEARCH_KEY"] }),
  granted_by: MaybeText.meta({ example: EXAMPLE.key }),
  granted_at: Seconds.nullable(),
});
export type GrantView = z.infer<typeof GrantView>;
