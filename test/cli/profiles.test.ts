/** The file of profiles, and the choice of a command's platform. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CommandError } from "../../src/cli/exit.ts";
import { checkCanKeep, configFile, keepProfile, profileName, readProfiles } from "../../src/cli/profiles.ts";
import { askHidden, type TypedInput } from "../../src/cli/said-secret.ts";
import { defaultProfile, namedPlatform } from "../../src/cli/which-platform.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const PROFILE = { platform: "https://one.example", key: "rk_one", project: null };
const VARIABLES = ["ROLLCALL_CONFIG", "ROLLCALL_URL", "ROLLCALL_API_KEY", "ROLLCALL_PROFILE", "ROLLCALL_PROJECT"];

let before: Record<string, string | undefined>;
beforeEach(() => {
  before = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name]]));
  for (const name of VARIABLES) delete process.env[name];
});
afterEach(() => {
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

/** Commands of this test use only this file. */
function ownFile(): string {
  const file = join(temporaryDirectory(), "deep", "config.json");
  process.env["ROLLCALL_CONFIG"] = file;
  return file;
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

test("the file is in the folder of the user's settings, unless it is named", () => {
  expect(configFile({ ROLLCALL_CONFIG: "/a/b.json", XDG_CONFIG_HOME: "/x" })).toBe("/a/b.json");
  expect(configFile({ XDG_CONFIG_HOME: "/x" })).toBe("/x/rollcall/config.json");
  expect(configFile({})).toMatch(/\/\.config\/rollcall\/config\.json$/);
});

test("profiles are readable by their owner alone, in a folder of the owner's, and nothing else is left there", () => {
  const file = ownFile();
  const umask = process.umask(0);
  try {
    keepProfile(file, "default", PROFILE);
    keepProfile(file, "work", { ...PROFILE, key: "rk_two", project: "math" });
  } finally {
    process.umask(umask);
  }
  expect([modeOf(file), modeOf(join(file, ".."))]).toEqual(["600", "700"]);
  expect(readdirSync(join(file, ".."))).toEqual(["config.json"]);
  keepProfile(file, "default", null);
  expect(readProfiles(file)).toEqual({ work: { ...PROFILE, key: "rk_two", project: "math" } });
});

test("a file that others can read is refused, and so is one that does not parse as profiles", () => {
  const file = ownFile();
  keepProfile(file, "default", PROFILE);
  chmodSync(file, 0o640);
  expect(() => readProfiles(file)).toThrow(`others may read or write it: chmod 600 ${file}`);
  expect(() => keepProfile(file, "more", PROFILE)).toThrow("chmod 600");
  chmodSync(file, 0o600);
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.slice(0, -9));
  expect(() => readProfiles(file)).toThrow("is not a valid rollcall profile file");
});

test("a failed write does not change the file", () => {
  const file = ownFile();
  keepProfile(file, "default", PROFILE);
  const text = readFileSync(file, "utf8");
  // A folder is in the place of its draft.
  mkdirSync(`${file}.${process.pid}.new`);
  expect(() => checkCanKeep(file)).toThrow();
  expect(() => keepProfile(file, "more", PROFILE)).toThrow();
  expect(readFileSync(file, "utf8")).toBe(text);
});

test("flags come before variables, and a default profile after both", () => {
  const file = ownFile();
  keepProfile(file, "default", PROFILE);
  keepProfile(file, "work", { platform: "https://two.example", key: "rk_two", project: "math" });
  expect(namedPlatform({})).toBe(null);
  expect(defaultProfile({})).toEqual({ url: PROFILE.platform, key: "rk_one", project: undefined, profile: "default" });
  process.env["ROLLCALL_PROFILE"] = "work";
  const work = { url: "https://two.example", key: "rk_two", project: "math", profile: "work" };
  expect(namedPlatform({})).toEqual(work);
  expect(namedPlatform({ project: "art" })).toEqual({ ...work, project: "art" });
  Object.assign(process.env, { ROLLCALL_URL: "http://env", ROLLCALL_API_KEY: "rk_env", ROLLCALL_PROJECT: "env" });
  const byVariables = { url: "http://env", key: "rk_env", project: "env", profile: null };
  expect(namedPlatform({})).toEqual(byVariables);
  expect(namedPlatform({ profile: "default" })).toMatchObject({ key: "rk_one", project: "env" });
  expect(namedPlatform({ platform: "http://flag" })).toEqual({ ...byVariables, url: "http://flag" });
  expect(namedPlatform({ profile: "local" })).toBe("local");
});

test("an invalid choice is refused with what to do", () => {
  ownFile();
  expect(() => namedPlatform({ profile: "work" })).toThrow("Log in: npx rollcall login --profile work");
  expect(() => namedPlatform({ profile: "toString" })).toThrow("there is no profile toString");
  expect(() => namedPlatform({ profile: "a", platform: "http://h" })).toThrow("cannot be combined with --platform");
  expect(() => namedPlatform({ platform: "http://h" })).toThrow("rollcall login --platform http://h");
  process.env["ROLLCALL_API_KEY"] = "rk_x";
  expect(() => namedPlatform({ platform: "http://h", project: "größe €" })).toThrow(
    "--project: not a valid project name",
  );
  expect(() => profileName("local", {})).toThrow("needs no login");
  expect(() => profileName("a b", {})).toThrow("letters, digits");
  expect(existsSync(configFile(process.env))).toBe(false);
});

/** A terminal at which this is typed. */
function typing(...parts: string[]) {
  const raw: boolean[] = [];
  let shown = "";
  const input: TypedInput = {
    setRawMode: (on) => raw.push(on),
    on: (event: string, listener: (part: string) => void) => {
      if (event === "data") queueMicrotask(() => parts.forEach(listener));
    },
    resume: () => undefined,
    pause: () => undefined,
  };
  const asked = askHidden("The key: ", input, { write: (text) => (shown += text) });
  return { asked, raw, shown: () => shown };
}

test("typed characters are not shown, can be deleted, and end with enter or ctrl-D", async () => {
  const typed = typing("rk_onX", "\x7fe", "\r", "more");
  expect(await typed.asked).toBe("rk_one");
  expect([typed.raw, typed.shown()]).toEqual([[true, false], "The key: \n"]);
  expect(await typing("rk_two\x04").asked).toBe("rk_two");
});

test("ctrl-C while a key is typed ends the command as an interruption", async () => {
  const typed = typing("rk_on\x03");
  await expect(typed.asked).rejects.toBeInstanceOf(CommandError);
  await expect(typed.asked).rejects.toMatchObject({ exit: 130 });
  expect(typed.raw).toEqual([true, false]);
});
