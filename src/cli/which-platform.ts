/**
 * Which platform a command is for, by what was said: --platform; --profile; ROLLCALL_URL; ROLLCALL_PROFILE. Where none of
 * them says anything, the platform that runs on the state directory comes before the default profile, and that before a
 * platform of the command's own (connect.ts): who has no profile notices nothing of them.
 */
import { usageError } from "./exit.ts";
import { configFile, DEFAULT_PROFILE, findProfile, LOCAL, type Profile, readProfiles } from "./profiles.ts";

/** What a command line says of it. */
export interface PlatformAsked {
  readonly platform?: string | undefined;
  readonly profile?: string | undefined;
  readonly project?: string | undefined;
}

/** A platform that is not of the state directory. */
export interface Elsewhere {
  readonly url: string;
  readonly key: string;
  /** Id or name; undefined: the key is for one project, or no project is asked about. */
  readonly project: string | undefined;
  /** Whose key it is; null: that of ROLLCALL_API_KEY. */
  readonly profile: string | null;
}

/** Null where nothing is named; LOCAL where the platform of the state directory is. */
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

/** Of --project or ROLLCALL_PROJECT. */
export function projectNamed({ project }: PlatformAsked): string | undefined {
  const named = project ?? (process.env["ROLLCALL_PROJECT"] || undefined);
  // A header holds nothing else.
  if (named === undefined || /^[\x21-\x7e]+$/.test(named)) return named;
  throw usageError(`--project: not a valid project name: ${JSON.stringify(named)}`, "project");
}

function byKeyVariable(given: string, asked: PlatformAsked): Elsewhere {
  const key = process.env["ROLLCALL_API_KEY"];
  if (!key) {
    const message = `ROLLCALL_API_KEY must hold a key of ${given}; or log in there: rollcall login --platform ${given}`;
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
  const message = `--profile: there is no profile ${name} in ${file}, only ${known}. Log in: rollcall login --profile ${name}`;
  throw usageError(message, "profile");
}

function elsewhereOf(name: string, { platform, key, project }: Profile, asked: PlatformAsked): Elsewhere {
  const chosen = projectNamed(asked) ?? project ?? undefined;
  return { url: platformUrl(platform), key, project: chosen, profile: name };
}

/** The address as it was given; throws for what is none. */
export function platformUrl(url: string): string {
  if (/^https?:/i.test(url) && URL.canParse(url)) return url;
  throw usageError(`--platform: ${url} is not an http or https URL`, "platform");
}

/** The key itself. A header holds nothing else than a key may be, and the error of one that does would show it. */
export function keyOf(key: string, name: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw usageError(`${name} is not a valid key: does it contain spaces or line breaks?`, name);
}
