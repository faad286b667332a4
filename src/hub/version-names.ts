/** `owner/name@1.2.0`, `@^1`, `@latest`: what a request names, and which version it is. */
import semver from "semver";
import { LIMITS } from "../contract/limits.ts";
import { nameKeyOf, PublishedName } from "../contract/published-environment.ts";

export const LATEST = "latest";

export interface Named {
  /** As names are compared. */
  readonly key: string;
  /** An exact version, a range or a tag. */
  readonly wanted: string;
}

/** Null if it is not the name of a published environment. */
export function readNamed(named: string): Named | null {
  // A range of any length would take semver seconds.
  if (named.length > LIMITS.publishedNamed) return null;
  const at = named.indexOf("@");
  const name = at === -1 ? named : named.slice(0, at);
  const parsed = PublishedName.safeParse(name.toLowerCase());
  if (!parsed.success) return null;
  return { key: nameKeyOf(parsed.data), wanted: at === -1 ? LATEST : named.slice(at + 1) };
}

/** `1.2.0`, `1.2.0-rc.1`: the spelling that is stored. Null for anything else, also for a `v` before it. */
export function exactVersion(text: string): string | null {
  const parsed = semver.parse(text);
  // A build (`+…`) would be another spelling of an equal version.
  return parsed !== null && parsed.version === text && parsed.build.length === 0 ? text : null;
}

export interface Choice {
  readonly version: string;
  readonly yanked: boolean;
}

/** The version that is meant; null if there is none. Yanked versions are chosen only by their exact number. */
export function chooseVersion(
  wanted: string,
  versions: readonly Choice[],
  tags: ReadonlyMap<string, string>,
): string | null {
  const named = tags.get(wanted);
  const exact = versions.find(({ version }) => version === wanted);
  if (exact !== undefined) return exact.version;
  const usable = versions.filter(({ yanked }) => !yanked).map(({ version }) => version);
  if (named !== undefined && usable.includes(named)) return named;
  if (wanted === LATEST) return newestOf(usable);
  if (named !== undefined) return null;
  return semver.validRange(wanted) === null ? null : semver.maxSatisfying(usable, wanted);
}

/** The version that `latest` names: the newest that is not a pre-release, or else the newest. Null without versions. */
export function newestOf(versions: readonly string[]): string | null {
  const sorted = semver.rsort([...versions]);
  return sorted.find((version) => semver.prerelease(version) === null) ?? sorted[0] ?? null;
}
