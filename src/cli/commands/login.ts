/** `rollcall login | logout | whoami`: which key the commands use, and whose it is. Keys are never read from argv. */

import type { WhoAmI } from "../../accounts/wire.ts";
import { DEFAULT_PROJECT, permits } from "../../contract/identity.ts";
import { ApiRequestError, RollcallClient } from "../../sdk/client.ts";
import { type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, failedOn, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { checkCanKeep, configFile, findProfile, keepProfile, type Profile, profileName } from "../profiles.ts";
import { shownSecret } from "../said-secret.ts";
import { timeText } from "../terminal/format.ts";
import { safeDetails } from "../terminal/table.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { platformUrl } from "../which-platform.ts";

const { json, timeout } = PLATFORM_FLAGS;
const PROFILE_FLAG = { profile: { value: "NAME", help: "default ROLLCALL_PROFILE, else default" } } as const;

const LOGIN = command({
  name: "login",
  help: "save a platform and its key as a profile for later commands",
  more: `The command asks for the key without showing it; with --key-stdin it reads stdin. If the platform accepts the key, it is
saved in ~/.config/rollcall/config.json, which only you can read.`,
  flags: {
    ...PROFILE_FLAG,
    platform: { value: "URL", help: "URL of the platform; default that of the profile, else ROLLCALL_URL" },
    project: { value: "NAME", help: "the project to use, if the key is for a whole organisation" },
    "key-stdin": { help: "read the key from stdin" },
    ...{ json, timeout },
  },
  async run(line) {
    line.none();
    const file = configFile(process.env);
    const name = profileName(line.text("profile"), process.env);
    const before = findProfile(file, name);
    const url = line.text("platform") ?? before?.platform ?? process.env["ROLLCALL_URL"];
    if (!url) throw usageError("--platform: is required: --platform URL", "platform");
    const platform = platformUrl(url);
    const key = await shownSecret("key", "key-stdin", line.on("key-stdin"));
    const profile = { platform, key, project: line.text("project") ?? null };
    const who = await asThe(profile, line, checkLogin(profile.project));
    keepProfile(file, name, profile);
    const term = terminal(line.on("json"));
    term.print(whoText(who, { platform, profile: name, project: profile.project }));
    if (line.on("json")) printJson({ ...who, profile: name, platform });
    return EXIT.good;
  },
});

/** Throws if the key works in another project than the named one, or if no such project exists. */
function checkLogin(project: string | null) {
  return async (client: RollcallClient, signal: AbortSignal | undefined): Promise<WhoAmI> => {
    const who = await client.whoAmI({ signal });
    if (project === null) return who;
    if (who.project !== null && project !== who.project.id && project !== who.project.name) {
      throw usageError(`--project: the key is only for the project ${who.project.name}`, "project");
    }
    if (permits(who.scopes, "runs:read")) await client.projects.get(project, { signal });
    return who;
  };
}

/** Makes a request to a platform with a profile's key. */
async function asThe<T>(
  { platform, key }: Profile,
  line: CommandLine<"timeout">,
  ask: (client: RollcallClient, signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  const timeoutMs = line.timeoutMs("timeout");
  try {
    const client = new RollcallClient({ baseUrl: platform, apiKey: key });
    return await ask(client, timeoutMs === null ? undefined : AbortSignal.timeout(timeoutMs));
  } catch (thrown) {
    if (thrown instanceof ApiRequestError && thrown.status === 401) {
      throw usageError(`${platform} rejected this key: ${thrown.message}`, "key");
    }
    throw failedOn({ url: platform, profile: null }, thrown);
  }
}

const LOGOUT = command({
  name: "logout",
  help: "delete a profile and its key",
  more: "With --revoke the key is revoked first, which takes one with the scope admin.",
  flags: { ...PROFILE_FLAG, revoke: { help: "also revoke the key, everywhere" }, ...{ json, timeout } },
  async run(line) {
    line.none();
    const file = configFile(process.env);
    const name = profileName(line.text("profile"), process.env);
    const profile = findProfile(file, name);
    if (profile === undefined) throw usageError(`--profile: there is no profile ${name} in ${file}`, "profile");
    const revoked = line.on("revoke") ? await asThe(profile, line, revokeOwn) : null;
    keepProfile(file, name, null);
    const term = terminal(line.on("json"));
    const what = revoked === null ? "the key is still valid on that platform" : `${revoked} is revoked`;
    term.print(`Logged out of ${profile.platform} (profile ${name}); ${what}`);
    if (line.on("json")) printJson({ profile: name, platform: profile.platform, revoked });
    return EXIT.good;
  },
});

/** Revokes the client's own key and returns its id. */
async function revokeOwn(client: RollcallClient, signal: AbortSignal | undefined): Promise<string> {
  const { who } = await client.whoAmI({ signal });
  return (await client.keys.revoke(who, { signal })).id;
}

const WHOAMI = command({
  name: "whoami",
  reads: true,
  help: "show whose key commands use here, and its scopes",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, url, profile, signal }) => {
      const who = await client.whoAmI({ signal });
      return { json: { ...who, platform: url, profile }, text: () => whoText(who, { platform: url, profile }) };
    });
  },
});

interface Where {
  readonly platform: string;
  readonly profile: string | null;
  /** The project of the profile. */
  readonly project?: string | null;
}

function whoText({ who, organization, project, scopes, expires_at }: WhoAmI, where: Where): string {
  const any = where.project == null ? `all; ${DEFAULT_PROJECT} without --project` : `${where.project}, of all`;
  return safeDetails({
    platform: where.platform,
    profile: where.profile,
    who,
    organisation: `${organization.name} (${organization.id})`,
    project: project === null ? any : `${project.name} (${project.id})`,
    scopes: scopes.join(", "),
    expires: expires_at === null ? "never" : timeText(expires_at),
  });
}

/**
 * Stores the key of a new member as a profile. Calls the function that creates the key only after a check that it can
 * be stored.
 */
export async function keepNewKey(
  name: string,
  { platform, project }: Omit<Profile, "key">,
  make: () => Promise<string>,
): Promise<void> {
  const file = configFile(process.env);
  checkCanKeep(file);
  keepProfile(file, name, { platform, project, key: await make() });
}

export const LOGIN_COMMANDS = [LOGIN, LOGOUT, WHOAMI] as const;
