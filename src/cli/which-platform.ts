/**
 * Finds the platform that a command names, in this order: --platform, --profile, ROLLCALL_URL, ROLLCALL_PROFILE. If
 * none of them is given, connect.ts uses the platform that runs on the state directory, then the default profile, then
 * the command's own platform. Profiles change nothing for a user who has none.
 */
import { COMMAND } from "../local/package-root.ts";
import { usageError } from "./exit.ts";
import { configFile, DEFAULT_PROFILE, findProfile, LOCAL, type Profile, readProfiles } from "./profiles.ts";

/** The choice on the command line. */
export interface PlatformAsked {
  readonly platform?: string | undefined;
  readonly profile?: string | undefined;
  readonly project?: string | undefined;
}

/** A platform other than that of the state directory. */
export interface Elsewhere {
  readonly url: string;
  readonly key: string;
  /** An id or a name; undefined if the key is for one project, or if no project is involved. */
  readonly project: string | undefined;
  /** The profile of the key; null for the key of ROLLCALL_API_KEY. */
  readonly profile: string | null;
}

/** Null if none is named; LOCAL if the platform of the state directory is named. */
export function namedPlatform(asked: PlatformAsked): Elsewhere | typeof LOCAL | null {
  const { platform, profile } = asked;
  if (platform !== undefined && profile !== undefined) {
    throw usageError("--profile: cannot be combined with --platform", "profile");
  }
  if (platform) return byKeyVariable(platform, asked);
  if (profile !== undefined) return byProfile(profile, asked);
  const { ROLLCALL_URL: url, ROLLCALL_PROFILE: fromEnvironment } = process.env;
  if (url) return byKeyVariable(url, asked);
  return fromEnvironment ? byProfile(fromEnvironment, asked) : null;
}

/** The profile of a plain `rollcall login`; null without one. */
export function defaultProfile(asked: PlatformAsked): Elsewhere | null {
  const profile = findProfile(configFile(process.env), DEFAULT_PROFILE);
  return profile === undefined ? null : elsewhereOf(DEFAULT_PROFILE, profile, asked);
}

/** The value of --project or ROLLCALL_PROJECT. */
export function projectNamed({ project }: PlatformAsked): string | undefined {
  const named = project ?? (process.env["ROLLCALL_PROJECT"] || undefined);
  // A header can hold nothing else.
  if (named === undefined || /^[\x21-\x7e]+$/.test(named)) return named;
  throw usageError(`--project: not a valid project name: ${JSON.stringify(named)}`, "project");
}

function byKeyVariable(given: string, asked: PlatformAsked): Elsewhere {
  const key = process.env["ROLLCALL_API_KEY"];
  if (!key) {
    const message = `ROLLCALL_API_KEY must hold a key of ${given}; or log in there: ${COMMAND} login --platform ${given}`;
    throw usageError(message, "ROLLCALL_API_KEY");
  }
  return {
    url: platformUrl(given),
    key: keyOf(key, "ROLLCALL_API_KEY"),
    project: projectNamed(asked),
    profile: null,
  };
}

function byProfile(name: string, asked: PlatformAsked): Elsewhere | typeof LOCAL {
  if (name === LOCAL) return LOCAL;
  const file = configFile(process.env);
  const profile = findProfile(file, name);
  if (profile !== undefined) return elsewhereOf(name, profile, asked);
  const known = Object.keys(readProfiles(file)).join(", ") || "none";
  const message = `--profile: there is no profile ${name} in ${file}, only ${known}. Log in: ${COMMAND} login --profile ${name}`;
  throw usageError(message, "profile");
}

function elsewhereOf(name: string, { platform, key, project }: Profile, asked: PlatformAsked): Elsewhere {
  const chosen = projectNamed(asked) ?? project ?? undefined;
  return { url: platformUrl(platform), key, project: chosen, profile: name };
}

/** The URL as it was given; throws if it is not a URL. */
export function platformUrl(url: string): string {
  if (/^https?:/i.test(url) && URL.canParse(url)) return url;
  throw usageError(`--platform: ${url} is not an http or https URL`, "platform");
}

/**
 * The key itself. A key has only characters that a header can hold; otherwise the error for the header would show the
 * key.
 */
export function keyOf(key: string, name: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw usageError(`${name} is not a valid key: does it contain spaces or line breaks?`, name);
}
