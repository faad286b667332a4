/** The commands for organisations, projects, keys and people, against a platform. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keepProfile, readProfiles } from "../../src/cli/profiles.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { type CommandResult, command } from "./run-rollcall.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const KEY = /rk_\w{40,}/;

let platform: Platform;
let model: ScriptedModel;
/** A key of a whole organisation, with `admin`, and a client that uses it; and a key of its project `math`. */
let admin: { readonly key: string; readonly client: RollcallClient; readonly keyOfMath: string };

beforeAll(async () => {
  model = await startScriptedModel({ reply: () => "It is 7." });
  const log = (line: string) => process.stderr.write(`${line}\n`);
  platform = await bootPlatform({ directory: null, port: testPort(26), log });
  const operator = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const { key } = (await operator.organizations.create({ name: "Example Labs", project: "math" })).key;
  if (key === null) throw new Error("the organisation has no key");
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: key, project: "math" });
  const ofMath = await client.keys.create({ name: "math", project: "math", scopes: ["admin"] });
  admin = { key, client, keyOfMath: ofMath.key ?? "" };
});
afterAll(async () => {
  await platform.stop();
  await model.stop();
});

/** A person's profiles, and a state directory without a platform. */
function person() {
  const folder = temporaryDirectory();
  const file = join(folder, "rollcall", "config.json");
  const env = { ROLLCALL_CONFIG: file, ROLLCALL_DIR: join(folder, "state"), ROLLCALL_URL: "", ROLLCALL_API_KEY: "" };
  const type = (line: string, stdin = "", more: Record<string, string> = {}): Promise<CommandResult> => {
    return command(line.split(" "), { env: { ...env, ...more }, stdin });
  };
  return { folder, file, type };
}

/** A person who has logged in with the key of the organisation. */
async function loggedIn() {
  const somebody = person();
  const { code, stderr } = await somebody.type(`login --platform ${platform.url} --key-stdin`, `${admin.key}\n`);
  expect([code, stderr]).toEqual([0, ""]);
  return somebody;
}

/** The output of a command that must succeed. */
async function good(asked: Promise<CommandResult>): Promise<CommandResult> {
  const result = await asked;
  expect(result.code, result.stderr).toBe(0);
  return result;
}

test("a key read from stdin is checked, stored for its owner alone, and used by later commands", async () => {
  const { file, type } = person();
  const login = await good(type(`login --platform ${platform.url} --key-stdin`, `${admin.key}\n`));
  expect(login.stdout).toMatch(
    /organisation +Example Labs \(org_\w+\)\nproject +all; default without --project\nscopes +admin\n/,
  );
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  const who = await good(type("whoami --json"));
  expect(JSON.parse(who.stdout)).toMatchObject({ object: "caller", platform: platform.url, profile: "default" });
  expect(who.stderr).toBe(`On ${platform.url}, with the profile default\n`);
  for (const { stdout, stderr } of [login, who]) expect(stdout + stderr).not.toMatch(KEY);
  const out = await good(type("logout"));
  expect(out.stdout).toContain("the key is still valid on that platform");
  expect(await type("logout")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("there is no profile default"),
  });
});

test("a key that is wrong, or a project that it cannot use, is not stored", async () => {
  const { file, type } = person();
  const wrong = await type(`login --platform ${platform.url} --key-stdin`, "rk_wrong\n");
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining(`${platform.url} rejected this key`)]);
  const nowhere = await type(`login --platform ${platform.url} --key-stdin --project nope`, admin.key);
  expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining("nope")]);
  const other = await type(`login --platform ${platform.url} --key-stdin --project default`, admin.keyOfMath);
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("only for the project math")]);
  const gone = await type("login --platform http://127.0.0.1:9 --key-stdin", admin.key);
  expect([gone.code, gone.stderr]).toEqual([4, expect.stringContaining("the platform at http://127.0.0.1:9 does not")]);
  const asked = await type(`login --platform ${platform.url}`);
  expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("--key-stdin")]);
  expect(existsSync(file)).toBe(false);
});

test("a project is named by a flag, a variable or the profile, and the error for a missing one says how", async () => {
  const { type } = await loggedIn();
  const none = await type("run list");
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining(", with --project NAME or ROLLCALL_PROJECT")]);
  await good(type("run list --project math"));
  await good(type("run list", "", { ROLLCALL_PROJECT: "math" }));
  const nope = await type("run list --project nope");
  expect([nope.code, nope.stderr]).toEqual([2, expect.stringContaining("npx rollcall project list lists")]);
  await good(type(`login --platform ${platform.url} --key-stdin --profile work --project math`, admin.key));
  const listed = await good(type("run list --profile work --json"));
  expect(listed.stderr).toBe(`On ${platform.url}, with the profile work, project math\n`);
});

test("a platform that runs on the state directory comes before the default profile, and local selects it", async () => {
  const { type } = await loggedIn();
  const here = { ROLLCALL_DIR: platform.directory };
  const plain = JSON.parse((await good(type("whoami --json", "", here))).stdout);
  expect(plain).toMatchObject({ organization: { name: "local" }, profile: null });
  const named = JSON.parse((await good(type("whoami --json", "", { ...here, ROLLCALL_PROFILE: "default" }))).stdout);
  expect(named).toMatchObject({ organization: { name: "Example Labs" }, profile: "default" });
  const local = JSON.parse((await good(type("whoami --json --profile local", "", here))).stdout);
  expect(local.organization.name).toBe("local");
});

test("a new key is alone on stdout, works for its scopes, and no other command prints one", async () => {
  const { type } = await loggedIn();
  const made = await good(type("key create nightly --project math --scope runs:read --expires-in 90d --rpm 60"));
  const key = made.stdout.trimEnd();
  expect(key).toMatch(/^rk_\w+$/);
  const [, id = ""] = /(key_\w+) is for the project math/.exec(made.stderr) ?? [];
  const shown = await good(type(`key show ${id} --json`));
  const in90Days = Date.now() / 1000 + 90 * 86_400;
  expect(JSON.parse(shown.stdout)).toMatchObject({ scopes: ["runs:read"], requests_per_minute: 60, name: "nightly" });
  expect(Math.abs(JSON.parse(shown.stdout).expires_at - in90Days)).toBeLessThan(60);
  const withIt = { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: key };
  await good(type("run list", "", withIt));
  const refused = await type("key list", "", withIt);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/lacks the scope admin; npx rollcall whoami shows/),
  ]);
  const updated = await good(type(`key update ${id} --scope runs:write --scope rollouts:read --no-rpm`));
  expect(updated.stdout).toMatch(/may +runs:write, rollouts:read\n/);
  const rotated = await good(type(`key rotate ${id} --overlap 0s --json`));
  const next = JSON.parse(rotated.stdout);
  expect(next.key).toMatch(/^rk_/);
  const listed = await good(type("key list"));
  const revoked = await good(type(`key revoke ${next.id}`));
  for (const { stdout, stderr } of [shown, updated, listed, revoked]) expect(stdout + stderr).not.toMatch(KEY);
  expect(made.stderr).not.toMatch(KEY);
});

test("a key is for the whole organisation only if the command says so", async () => {
  const { type } = await loggedIn();
  const unsaid = await type("key create any --scope runs:read");
  expect([unsaid.code, unsaid.stderr]).toEqual([2, expect.stringContaining("or --organization for all projects")]);
  const made = await good(type("key create any --scope runs:read --organization --json"));
  expect(JSON.parse(made.stdout)).toMatchObject({ project_id: null });
  const own = { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: admin.keyOfMath };
  const local = await good(type("key create mine --scope runs:read --json", "", own));
  expect(JSON.parse(local.stdout).project_id).toMatch(/^pj_/);
});

test("logging out may revoke the key, and a profile with a revoked key gets the advice to log in again", async () => {
  const { type, file } = await loggedIn();
  const made = await good(type("key create leaving --scope admin --organization"));
  await good(type(`login --profile leaving --platform ${platform.url} --key-stdin`, made.stdout));
  const out = await good(type("logout --profile leaving --revoke --json"));
  const { revoked_at } = await admin.client.keys.get(JSON.parse(out.stdout).revoked);
  expect(revoked_at).toEqual(expect.any(Number));
  keepProfile(file, "old", { platform: platform.url, key: "rk_old", project: null });
  const old = await type("run list --profile old");
  expect([old.code, old.stderr]).toEqual([
    2,
    expect.stringContaining("; log in again: npx rollcall login --profile old"),
  ]);
  const kept = await type("logout --profile old --revoke");
  expect([kept.code, kept.stderr]).toEqual([2, expect.stringContaining("rejected this key")]);
  expect(Object.keys(readProfiles(file))).toEqual(["default", "old"]);
});

test("projects are created, listed, and get retentions", async () => {
  const { type } = await loggedIn();
  const made = await good(type("project create art --runs-days 30 --json"));
  expect(JSON.parse(made.stdout)).toMatchObject({ name: "art", retention: { runs_days: 30, verdicts_days: 90 } });
  const updated = await good(type("project update art --runs-days ever --verdicts-days 7 --name paint"));
  expect(updated.stdout).toMatch(/^project +paint\n[\s\S]*keeps runs +forever\n[\s\S]*keeps judgements +7 days\n/);
  expect((await good(type("project list"))).stdout).toMatch(/\npaint +pj_/);
  expect((await good(type("project show paint"))).stdout).toMatch(/^project +paint\n/);
});

test("an organisation is shown and changed, and an operator creates others and sets their limits", async () => {
  const { type } = await loggedIn();
  const changed = await good(type("org update --allow-host models.example --allow-host *.gpu.example --json"));
  expect(JSON.parse(changed.stdout).allowed_hosts).toEqual(["models.example", "*.gpu.example"]);
  await good(type("org update --any-host"));
  expect((await good(type("org show"))).stdout).toMatch(/^organisation +Example Labs\n[\s\S]*hosts it may call +any\n/);
  const operator = { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: platform.key };
  const made = await good(type("org create Others --first-project one --runs-in-flight 5 --json", "", operator));
  const other = JSON.parse(made.stdout);
  expect(other).toMatchObject({ name: "Others", limits: { runs_in_flight: 5 }, project: { name: "one" } });
  const plain = await good(type("org create More", "", operator));
  expect([plain.stdout, plain.stderr]).toEqual([expect.stringMatching(/^rk_\w+\n$/), expect.stringContaining("org_")]);
  const limited = await good(type(`org limits ${other.id} --runs-in-flight none --storage-bytes 9`, "", operator));
  expect(limited.stdout).toMatch(/runs in flight +no limit\n[\s\S]*storage bytes +9\n/);
  expect((await good(type("org list", "", operator))).stdout).toMatch(/\nOthers +org_/);
  const refused = await type("org list");
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("lacks the scope operator")]);
});

test("a person is invited, becomes a member with their own profile, and is removed", async () => {
  const { type } = await loggedIn();
  const invited = await good(type("invitation create ann@example.com --role developer"));
  const [link, token = ""] = invited.stdout.split("#");
  expect([link, token]).toEqual([`${platform.url}/join`, expect.stringMatching(/^rki_\w+\n$/)]);
  expect(invited.stderr).toContain(`npx rollcall invitation accept --platform ${platform.url}`);
  const ann = person();
  const accepted = await good(
    ann.type(`invitation accept --platform ${platform.url} --name Ann --token-stdin`, invited.stdout),
  );
  expect(accepted.stdout).toBe("ann@example.com is developer of Example Labs (profile default)\n");
  expect(accepted.stdout + accepted.stderr).not.toMatch(KEY);
  const who = JSON.parse((await good(ann.type("whoami --json"))).stdout);
  expect(who.scopes).toContain("runs:write");
  const twice = await person().type(`invitation accept --platform ${platform.url} --token-stdin`, token);
  expect(twice.code).toBe(2);
  expect((await good(type("invitation list"))).stdout).toMatch(/ann@example\.com +developer +accepted/);
  expect((await good(type("person role ann@example.com viewer"))).stdout).toBe("ann@example.com is viewer\n");
  expect((await good(type("person list"))).stdout).toMatch(/\nann@example\.com +Ann +viewer/);
  expect((await good(type("person remove ann@example.com"))).stdout).toBe("ann@example.com is no longer a member\n");
  const nobody = await type("person remove ann@example.com");
  expect([nobody.code, nobody.stderr]).toEqual([2, expect.stringContaining("nobody in the organisation")]);
  const bob = JSON.parse((await good(type("invitation create bob@example.com --role viewer --json"))).stdout);
  expect((await good(type(`invitation delete ${bob.id}`))).stdout).toBe(`Deleted ${bob.id}\n`);
});

test("a user with a profile of the platform accepts as that person, if the address is theirs", async () => {
  const { type: invite } = await loggedIn();
  const accept = `invitation accept --platform ${platform.url} --token-stdin`;
  const invited = async (email: string) => (await good(invite(`invitation create ${email} --role viewer`))).stdout;
  const second = await admin.client.invitations.create({ email: "other@example.com", role: "viewer" });
  const carl = person();
  const first = await good(carl.type(`${accept} --json`, await invited("carl@example.com")));
  const { id } = JSON.parse(first.stdout).person;
  expect(first.stderr).not.toContain("Accepted with");
  const again = await good(carl.type(`${accept} --profile second --json`, await invited("carl@example.com")));
  expect([JSON.parse(again.stdout).person.id, again.stderr]).toEqual([id, expect.stringContaining("profile default")]);
  // The command asks which of two profiles to use.
  const by = await good(carl.type(`${accept} --profile third --as second --json`, await invited("carl@example.com")));
  expect([JSON.parse(by.stdout).person.id, by.stderr]).toEqual([id, expect.stringContaining("profile second")]);
  const none = await good(carl.type(`${accept} --profile fourth --json`, await invited("carl@example.com")));
  expect(JSON.parse(none.stdout).person.id).not.toBe(id);
  const other = await good(carl.type(`${accept} --profile other --as second --json`, second.url ?? ""));
  expect(JSON.parse(other.stdout).person.id).not.toBe(id);
  const key = readProfiles(carl.file)["default"]?.key ?? "";
  const asked = await invited("carl@example.com");
  const named = await good(
    person().type(`${accept} --json`, asked, { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: key }),
  );
  expect(JSON.parse(named.stdout).person.id).toBe(id);
  const wrong = await carl.type(`${accept} --as nobody`, "rki_x");
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--as: nobody is not a profile of")]);
  const elsewhere = await carl.type(
    "invitation accept --platform http://127.0.0.1:9 --as second --token-stdin",
    "rki_x",
  );
  expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining("its profiles: none")]);
});

test("the audit log lists what was done, and more on request", async () => {
  const { type } = await loggedIn();
  await good(type("project create logged"));
  const log = await good(type("audit-log --action createProject --limit 1"));
  expect(log.stdout).toMatch(/^entry +at +who[\s\S]*key_\w+ +createProject +(pj_\w+)? +201/);
  const all = JSON.parse((await good(type("audit-log --limit 2 --json"))).stdout);
  expect(all).toMatchObject({ object: "list", has_more: true });
  expect(all.data).toHaveLength(2);
});

/** Every file under a folder. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

async function runOf(n: number) {
  const endpoint = { base_url: model.url };
  const run = await admin.client.runs.create({ environment: "calculator", model: "m", endpoint, num_examples: n });
  for await (const _event of admin.client.runs.events(run.id));
  return run.id;
}

test("an organisation is exported completely, and an interrupted export continues where it stopped", async () => {
  const { type, folder } = await loggedIn();
  const id = await runOf(12);
  await admin.client.datasets.upload('{"question":"1","answer":"#### 1"}\n', { name: "rows" });
  await admin.client.secrets.create({ name: "HUSH", value: "never-said" });
  const out = join(folder, "out");
  const done = await good(type(`org export ${out} --json`));
  const said = JSON.parse(done.stdout);
  expect(said.counts).toMatchObject({ runs: 1, rollouts: 12, datasets: 1, secrets: 1 });
  const manifest = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"));
  const listed = manifest.files.map(({ path }: { path: string }) => path);
  expect([...listed, "manifest.json"].sort()).toEqual(filesIn(out));
  const account = ["organization", "people", "keys", "invitations", "deletions"].map((name) => `${name}.json`);
  expect(listed).toEqual(expect.arrayContaining([...account, "audit-log.jsonl"]));
  for (const { path, sha256 } of manifest.files) {
    expect(
      createHash("sha256")
        .update(readFileSync(join(out, path)))
        .digest("hex"),
      path,
    ).toBe(sha256);
  }
  const text = filesIn(out).map((file) => readFileSync(join(out, file), "utf8"));
  for (const content of text) expect(content).not.toMatch(/never-said|rk_\w{40,}/);
  const place = `projects/math/runs/${id}`;
  const rollouts = readFileSync(join(out, place, "rollouts.jsonl"), "utf8");
  expect(rollouts.trimEnd().split("\n")).toHaveLength(12);
  const again = await type(`org export ${out}`);
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("already has a complete export")]);
  const events = readFileSync(join(out, place, "events.jsonl"), "utf8");
  expect(events).toContain("run.completed");

  cutOff(out, place, rollouts);
  const resumed = await good(type(`org export ${out} --json`));
  expect(JSON.parse(resumed.stdout).counts).toMatchObject({ runs: 1, rollouts: 12 });
  expect(readFileSync(join(out, place, "rollouts.jsonl"), "utf8")).toBe(rollouts);
  expect(readFileSync(join(out, place, "events.jsonl"), "utf8")).toBe("kept\n");
});

/** The state after a kill: no manifest, and half a line after five rollouts. Complete event files are marked. */
function cutOff(out: string, place: string, rollouts: string): void {
  const identity = JSON.parse(readFileSync(join(out, "organization.json"), "utf8")).id;
  rmSync(join(out, "manifest.json"));
  writeFileSync(join(out, "manifest.json.partial"), `${JSON.stringify({ organization: identity, project: null })}\n`);
  const lines = rollouts.split("\n");
  const half = `${lines.slice(0, 5).join("\n")}\n${lines[5]?.slice(0, 40)}`;
  renameSync(join(out, place, "rollouts.jsonl"), join(out, place, "rollouts.jsonl.partial"));
  writeFileSync(join(out, place, "rollouts.jsonl.partial"), half);
  writeFileSync(join(out, place, "events.jsonl"), "kept\n");
}

test("a key of one project exports that project and says so, and one without admin nothing", async () => {
  const { type, folder } = await loggedIn();
  const env = { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: admin.keyOfMath };
  const out = join(folder, "one");
  const done = await good(type(`org export ${out}`, "", env));
  expect(done.stderr).toContain("The key is for the project math: only that is exported.");
  expect(filesIn(out)).toEqual(expect.arrayContaining(["manifest.json", "projects/math/project.json"]));
  expect(filesIn(out)).not.toContain("organization.json");
  const made = await good(type("key create reads --project math --scope runs:read"));
  const reads = { ...env, ROLLCALL_API_KEY: made.stdout.trim() };
  const refused = await type(`org export ${join(folder, "two")}`, "", reads);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("a key with the scope admin")]);
  const mixed = await type(`org export ${folder}`);
  expect([mixed.code, mixed.stderr]).toEqual([2, expect.stringContaining("is not empty")]);
});

test("no command takes a key as an argument: other processes could read it", async () => {
  for (const name of ["login", "logout", "key create", "invitation accept"]) {
    const { stdout } = await good(command([...name.split(" "), "--help"]));
    expect(stdout).toContain("Usage:");
    expect(stdout).not.toMatch(/--(key|token|api-key) [A-Z]/);
  }
});

test("deleting a run says at once how long it takes, and again at the timeout", async () => {
  const { type } = await loggedIn();
  const id = await runOf(1);
  const { code, stderr, stdout } = await type(`run delete ${id} --project math --yes --timeout 3`);
  expect([code, stdout], stderr).toEqual([1, ""]);
  expect(stderr).toMatch(
    /^del_\w+ has started\. It finishes about 15 minutes after the run has ended, and continues without/m,
  );
  expect(stderr).toMatch(
    /the time of --timeout is over; a started deletion continues: npx rollcall deletion show del_\w+/,
  );
  const refused = await type("project delete math --json");
  expect([refused.code, JSON.parse(refused.stdout).error.param]).toEqual([2, "confirm"]);
});
