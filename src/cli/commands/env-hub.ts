/** `rollcall env search | show | yank | deprecate | tag | grant | diff`: environments that organisations publish. */

import * as z from "zod";
import type { GrantView, PublishedVersion } from "../../contract/published-environment.ts";
import type { EnvironmentView } from "../../contract/run.ts";
import { COMMAND } from "../../local/package-root.ts";
import { type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform } from "../on-platform.ts";
import { bytesText, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";
import { safeText } from "../terminal/text.ts";
import { validationLines } from "../terminal/validation.ts";

const FOUND = 100;
const VERSIONS = 100;
const HEADER = ["environment", "version", "visibility", "description"];
const VERSION_HEADER = ["version", "published", "tags", "state"];

interface Named {
  /** `owner/name`. */
  readonly name: string;
  /** What follows the `@`; null without it. */
  readonly version: string | null;
}

/** The one argument of a command, `owner/name` or `owner/name@version`, also with an `@` in front as npm has it. */
export function publishedName(given: string): Named {
  const [, name, version] = /^@?([^@/]+\/[^@/]+)(?:@(.+))?$/.exec(given) ?? [];
  if (name !== undefined) return { name, version: version ?? null };
  throw usageError(`${given} is not the name of a published environment: use owner/name`, "environment");
}

/** The same, which must name one version. */
export function oneVersion(given: string): Named & { readonly version: string } {
  const { name, version } = publishedName(given);
  if (version !== null) return { name, version };
  throw usageError(`name one version of ${name}, such as ${name}@1.0.0`, "environment");
}

const SEARCH = command({
  name: "env search",
  takes: "[text]",
  reads: true,
  help: "search environments by name and description",
  flags: { owner: { value: "NAME", help: "only environments that it has published" }, ...PLATFORM_FLAGS },
  run(line) {
    const [search, ...more] = line.positionals;
    if (more.length > 0) throw usageError("quote the text to search for, if it has more than one word");
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.environments.list({ search, owner: line.text("owner") }, { signal }), FOUND);
      const none = "No environment that you may use has this text in its name or description.";
      const more = page.has_more ? `\n\nThere are more than ${FOUND}: search for a longer text.` : "";
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) + more };
    });
  },
});

function rowOf({ id, version, published }: EnvironmentView): string[] {
  if (published === null) return [id, version, "built in", ""];
  return [id, version, published.visibility, published.description ?? ""];
}

const SHOW = command({
  name: "env show",
  takes: "<environment>",
  argument: "environment",
  reads: true,
  help: "show an environment: its versions, its validation and what it needs",
  more: "For a published one: owner/name, with @version, @range or @tag for another version than the newest.",
  flags: PLATFORM_FLAGS,
  run(line) {
    const id = line.one("an environment");
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      if (!id.includes("/")) {
        const environment = await client.environments.get(id, { signal });
        return { json: { environment, version: null, versions: null }, text: () => safeDetails(shapeOf(environment)) };
      }
      const { name, version: wanted } = publishedName(id);
      const versions = await gather(client.environments.versions(name, { limit: 100 }, { signal }), VERSIONS);
      const gone = versions.data.find(({ version, taken_down }) => version === wanted && taken_down !== null);
      // The platform has deleted the code of a version that was taken down, so it does not describe it.
      const environment = gone ? null : await client.environments.get(wanted ? `${name}@${wanted}` : name, { signal });
      const version = gone ?? environment?.published ?? null;
      const list = listText(versions.data, { header: VERSION_HEADER, rowOf: versionRow, none: "No versions.", room });
      const more = versions.has_more ? `\nThere are more than ${VERSIONS} versions.` : "";
      const about = version === null ? "" : versionText(version, environment);
      return { json: { environment, version, versions }, text: () => `${about}\n\n${list}${more}` };
    });
  },
});

/** What a run must know of it. */
function shapeOf({ id, version, digest, dataset, args, needs, judges }: EnvironmentView) {
  const { properties = {} } = args as { properties?: object };
  return {
    ...{ environment: id, version, digest, dataset: dataset ?? "depends on its arguments" },
    args: Object.keys(properties).join(", ") || null,
    ...{ judges: judges.join(", ") || null, needs: needs.join(", ") || null },
  };
}

function versionText(version: PublishedVersion, environment: EnvironmentView | null): string {
  const { provenance, description, license, visibility, tags, package: packed } = version;
  const shown = safeDetails({
    ...{
      environment: version.name,
      kind: version.kind,
      version: version.version,
      state: stateOf(version) || null,
      description,
    },
    ...(environment && shapeOf(environment)),
    ...{ digest: version.digest, tags: tags.join(", ") || null, visibility, license },
    package: `${bytesText(packed.bytes)}, ${packed.integrity}`,
    ...{ repository: provenance.repository, commit: provenance.commit, "built by": provenance.builder },
    published: `${timeText(version.created_at)} by ${version.created_by}`,
  });
  return `${shown}\n\n${validationText(version)}`;
}

function versionRow(version: PublishedVersion): string[] {
  return [version.version, timeText(version.created_at), version.tags.join(", "), stateOf(version)];
}

/** Why it should not be used; empty if nothing is known against it. */
function stateOf(version: PublishedVersion): string {
  const { yanked, deprecated, taken_down } = version;
  const reasons = [
    taken_down && `taken down by the operator: ${taken_down.reason}`,
    yanked && `yanked: ${yanked.reason}`,
    deprecated !== null && `deprecated: ${deprecated}`,
    version.validation["ok"] === false && "its validation failed",
  ];
  return reasons.filter((reason) => typeof reason === "string").join("; ");
}

const Validation = z.object({
  ok: z.boolean(),
  examples: z.number(),
  checks: z.array(
    z.object({
      name: z.string(),
      status: z.enum(["ok", "warning", "error", "unchecked", "skipped"]),
      message: z.string(),
    }),
  ),
  policies: z.record(z.string(), z.object({ mean: z.number().nullable(), n: z.number() })),
  judgements: z
    .array(
      z.object({
        ...{ judge: z.string(), question: z.number(), judgement: z.string() },
        ...{ reward: z.number().nullable(), error: z.string().nullable() },
      }),
    )
    .default([]),
});

/** The record that is stored with a version. */
export function validationText({ validation }: PublishedVersion): string {
  const read = Validation.safeParse(validation);
  if (!read.success) return "validation: this version of rollcall cannot read the record; --json shows it";
  const { checks, policies, judgements } = read.data;
  return safeText(`${outcomeText(read.data)}\n\n${validationLines(checks, policies, judgements)}`);
}

function outcomeText({ ok, examples, checks }: z.infer<typeof Validation>): string {
  if (checks.every(({ status }) => status === "skipped")) return "not validated";
  const rows = `${examples} rows played`;
  if (!ok) return `validation failed, ${rows}`;
  const open = checks.filter(({ status }) => status === "unchecked").map(({ name }) => name);
  return open.length === 0
    ? `validation passed, ${rows}`
    : `validation found no error, ${rows}, not fully checked: ${open.join(", ")}`;
}

const YANK = command({
  name: "env yank",
  takes: "<owner/name@version>",
  argument: "environment",
  help: "let ranges and tags skip a version, or undo it",
  more: "A run that names the version exactly is still accepted, and all runs that use it continue.",
  flags: {
    reason: { value: "TEXT", help: "why: shown to everybody who uses the version" },
    undo: { help: "let ranges and tags find it again" },
    ...PLATFORM_FLAGS,
  },
  run: (line) => {
    const reason = noteOf(line, "reason");
    return change(line, { yanked: reason === null ? null : { reason } });
  },
});

const DEPRECATE = command({
  name: "env deprecate",
  takes: "<owner/name@version>",
  argument: "environment",
  help: "advise against a version, or undo it",
  more: "Nothing else changes: ranges and tags still find it.",
  flags: {
    message: { value: "TEXT", help: "what to use instead" },
    undo: { help: "remove the message" },
    ...PLATFORM_FLAGS,
  },
  run: (line) => change(line, { deprecated: noteOf(line, "message") }),
});

/** The text of a flag; null with --undo. */
function noteOf<Flag extends string>(line: CommandLine<Flag | "undo">, flag: Flag): string | null {
  const text = line.text(flag);
  if (line.on("undo") && text !== undefined) throw usageError(`--${flag}: cannot be combined with --undo`, flag);
  if (line.on("undo")) return null;
  if (text === undefined || text === "") throw usageError(`--${flag}: is required, or --undo`, flag);
  return text;
}

function change(
  line: CommandLine<keyof typeof PLATFORM_FLAGS>,
  patch: { readonly yanked?: { readonly reason: string } | null; readonly deprecated?: string | null },
) {
  const { name, version } = oneVersion(line.one("a version"));
  return onPlatform(line, async ({ client, signal }) => {
    const changed = await client.environments.update(`${name}@${version}`, patch, { signal });
    return {
      json: changed,
      text: () => safeText(`${changed.id}: ${stateOf(changed) || "neither yanked nor deprecated"}`),
    };
  });
}

const TAG = command({
  name: "env tag",
  takes: "<owner/name@version> <tag>",
  argument: "environment",
  help: "point a tag to a version, or delete a tag",
  flags: { delete: { help: "delete the tag; the version is not needed" }, ...PLATFORM_FLAGS },
  run(line) {
    const [id = "", tag, ...more] = line.positionals;
    if (tag === undefined || more.length > 0) throw usageError("a version and a tag are required");
    if (line.on("delete")) {
      const { name } = publishedName(id);
      return onPlatform(line, async ({ client, signal }) => {
        const deleted = await client.environments.deleteTag(name, tag, { signal });
        return { json: deleted, text: () => `Deleted ${name}@${tag}` };
      });
    }
    const { name, version } = oneVersion(id);
    return onPlatform(line, async ({ client, signal }) => {
      const moved = await client.environments.moveTag(name, tag, version, { signal });
      return { json: moved, text: () => `${moved.name}@${moved.id} is ${moved.version}` };
    });
  },
});

const GRANT = command({
  name: "env grant",
  takes: "<owner/name> [need]…",
  argument: "environment",
  help: "let another organisation's environment use secrets and hosts of the project",
  more: `Without needs, it shows what is granted. Needs are written as the environment declares them: ${COMMAND} env show.`,
  flags: { revoke: { help: "take these needs back; without needs: all" }, ...PLATFORM_FLAGS },
  run(line) {
    const [id = "", ...needs] = line.positionals;
    const { name, version } = publishedName(id);
    if (version !== null) throw usageError(`a grant is for all versions: use ${name}`, "environment");
    return onPlatform(line, async ({ client, signal }) => {
      const before = await client.environments.getGrant(name, { signal });
      const wanted = grantedAfter(before.needs, needs, line.on("revoke"));
      const same = wanted.length === before.needs.length && wanted.every((need) => before.needs.includes(need));
      const grant = same ? before : await client.environments.setGrant(name, wanted, { signal });
      return { json: grant, text: () => grantText(grant) };
    });
  },
});

function grantedAfter(before: readonly string[], needs: readonly string[], revoke: boolean): string[] {
  if (!revoke) return [...new Set([...before, ...needs])];
  const other = needs.find((need) => !before.includes(need));
  if (other !== undefined) throw usageError(`${other} is not granted`, "need");
  return needs.length === 0 ? [] : before.filter((need) => !needs.includes(need));
}

function grantText({ id, needs }: GrantView): string {
  return needs.length === 0 ? `${id} may use nothing of this project` : `${id} may use ${needs.join(", ")}`;
}

const DIFF = command({
  name: "env diff",
  takes: "<owner/name@a> <owner/name@b>",
  argument: "environment",
  reads: true,
  help: "show how the files of two published versions differ",
  more: "Text files of up to 64 KiB are shown as a unified diff; for others, and for the bundle, only the sizes.",
  flags: PLATFORM_FLAGS,
  run(line) {
    const [first, second, ...more] = line.positionals;
    if (first === undefined || second === undefined || more.length > 0) throw usageError("two versions are required");
    const names = [first, second].map(oneVersion).map(({ name, version }) => `${name}@${version}`);
    return onPlatform(line, async ({ client, signal }) => {
      const { downloadPackage, filesIn, publishedVersion } = await import("../hub/package-files.ts");
      const { diffPackages, diffText } = await import("../hub/diff-packages.ts");
      const sides = await Promise.all(
        names.map(async (name) => {
          const version = await publishedVersion(client, name, signal);
          return { id: version.id, files: await filesIn(version, await downloadPackage(client, version, signal)) };
        }),
      );
      const [from, to] = sides;
      if (from === undefined || to === undefined) throw new Error("two versions were named");
      const files = diffPackages(from.files, to.files);
      const json = { object: "environment_diff", from: from.id, to: to.id, files };
      return { json, text: () => safeText(diffText(files)) };
    });
  },
});

export const ENV_HUB_COMMANDS = [SEARCH, SHOW, YANK, DEPRECATE, TAG, GRANT, DIFF] as const;
