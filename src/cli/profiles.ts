/**
 * Profiles: the platforms that a user has logged in to, in a file in the user's settings.
 *
 * Invariants: the file holds keys, so only its owner may read it; a file that others can read is refused. It is
 * replaced in one step, so a killed command leaves either the old profiles or the new ones. A draft that a killed
 * command leaves behind has the same permissions.
 */
import { mkdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import * as z from "zod";
import { readIfThere, replaceFile } from "../local/directory-lock.ts";
import { usageError } from "./exit.ts";

export const DEFAULT_PROFILE = "default";
/** Not a profile: always the platform of the state directory. */
export const LOCAL = "local";

const Profile = z.object({
  platform: z.string().describe("its address, without /v1"),
  key: z.string(),
  project: z.string().nullable().describe("id or name; for a key of a whole organisation"),
});
export type Profile = z.infer<typeof Profile>;

const ConfigFile = z.object({ profiles: z.record(z.string(), Profile) });

const OTHERS = 0o077;
const OWNER_ONLY = 0o700;

type Environment = Readonly<Record<string, string | undefined>>;

/** ROLLCALL_CONFIG, else `rollcall/config.json` in the folder of the user's settings. */
export function configFile(environment: Environment): string {
  const { ROLLCALL_CONFIG: own, XDG_CONFIG_HOME: folder } = environment;
  if (own) return resolve(own);
  return join(folder || join(homedir(), ".config"), "rollcall", "config.json");
}

/**
 * Every profile by its name; empty if there is no file. Throws a usage error if others can read the file, or if it
 * cannot be read.
 */
export function readProfiles(file: string): Readonly<Record<string, Profile>> {
  const text = readIfThere(file);
  if (text === null) return {};
  const mode = statSync(file).mode & 0o777;
  if ((mode & OTHERS) !== 0) {
    throw usageError(`${file} holds keys, and others may read or write it: chmod 600 ${file}`, "ROLLCALL_CONFIG");
  }
  const read = ConfigFile.safeParse(jsonOrNothing(text));
  if (read.success) return read.data.profiles;
  throw usageError(`${file} is not a valid rollcall profile file: fix it, or remove it and log in`, "ROLLCALL_CONFIG");
}

/** Undefined if no profile has this name. */
export function findProfile(file: string, name: string): Profile | undefined {
  const profiles = readProfiles(file);
  return Object.hasOwn(profiles, name) ? profiles[name] : undefined;
}

function jsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Replaces the profile of this name, or adds it; null removes it. */
export function keepProfile(file: string, name: string, profile: Profile | null): void {
  const { [name]: _before, ...others } = readProfiles(file);
  const profiles = profile === null ? others : { ...others, [name]: profile };
  mkdirSync(dirname(file), { recursive: true, mode: OWNER_ONLY });
  replaceFile(file, `${JSON.stringify({ profiles }, null, 2)}\n`);
}

/** Throws if a profile could not be saved; called before requesting a key that is shown only once. */
export function checkCanKeep(file: string): void {
  const profiles = readProfiles(file);
  mkdirSync(dirname(file), { recursive: true, mode: OWNER_ONLY });
  replaceFile(file, `${JSON.stringify({ profiles }, null, 2)}\n`);
}

/** The profile name of `--profile` or ROLLCALL_PROFILE, checked. */
export function profileName(given: string | undefined, environment: Environment): string {
  const name = given ?? (environment["ROLLCALL_PROFILE"] || DEFAULT_PROFILE);
  if (name === LOCAL) {
    throw usageError(`--profile: ${LOCAL} is the platform of the state directory, and needs no login`, "profile");
  }
  if (/^[a-z0-9][a-z0-9._-]{0,62}$/i.test(name) && name !== "__proto__") return name;
  throw usageError(`--profile: ${name} must be letters, digits, dots, dashes or underscores`, "profile");
}
