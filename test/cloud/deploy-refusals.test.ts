/** What `rollcall deploy` refuses before it changes anything at Cloudflare. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { newRecord, writeDeployment } from "../../src/local/deployment-file.ts";
import { command } from "../cli/run-rollcall.ts";
import { TEST_HANGS_MS } from "../hang-limits.ts";
import { openStand } from "./stand.ts";

test("a login with several accounts must name one, and an account without a name below workers.dev needs a domain", async () => {
  const two = await openStand(["a".repeat(32), "b".repeat(32)]);
  const { code, stderr } = await two.rollcall("deploy", "--name", "prod");
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/--account: .*several accounts.*a{32} \(Account a\), b{32}/),
  ]);
  const { stub, rollcall, folder } = await openStand();
  stub.subdomain = null;
  const nameless = await rollcall("deploy", "--name", "prod");
  expect([nameless.code, nameless.stderr]).toEqual([
    2,
    expect.stringContaining("--domain: the account has no workers.dev name"),
  ]);
  const profile = { platform: "https://elsewhere.example.com", key: "rk_other", project: null };
  writeFileSync(join(folder, "config.json"), JSON.stringify({ profiles: { prod: profile } }), { mode: 0o600 });
  const taken = await rollcall("deploy", "--name", "prod", "--domain", "rollcall.example.com");
  expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining("the profile prod is of https://elsewhere")]);
  for (const { seen } of [stub, two.stub]) expect(seen.filter(({ kind }) => !kind.startsWith("GET"))).toEqual([]);
});

test("a wrong name, place, variable or file is refused with the flag or the line", async () => {
  const { stub, env, folder } = await openStand();
  const refused = async (...words: string[]) => {
    const { code, stdout } = await command(["deploy", ...words, "--json"], { env, cwd: folder });
    const { error } = JSON.parse(stdout);
    return [code, error.param, error.message];
  };
  expect(await refused()).toEqual([2, "name", "--name: is required: --name prod"]);
  for (const name of ["Prod", "local", "prod-", "x-preview", "a-name-that-is-much-too-long"]) {
    expect(await refused("--name", name)).toEqual([2, "name", expect.stringContaining(`--name: ${name} must be`)]);
  }
  expect((await refused("--name", "prod", "--location", "mars")).slice(0, 2)).toEqual([2, "location"]);
  expect((await refused("--name", "prod", "--location", "weur", "--jurisdiction", "eu")).slice(0, 2)).toEqual([
    2,
    "jurisdiction",
  ]);
  expect((await refused("--name", "prod", "--url", "example.com")).slice(0, 2)).toEqual([2, "url"]);
  for (const domain of ["https://a.example.com", "a.example.com/x", "*.example.com", "example"]) {
    expect(await refused("--name", "prod", "--domain", domain)).toEqual([
      2,
      "domain",
      expect.stringContaining(`--domain: ${domain} must be a host name`),
    ]);
  }
  expect((await refused("status", "--name", "prod")).slice(0, 2)).toEqual([2, "name"]);
  expect(stub.seen.filter(({ kind }) => !kind.startsWith("GET"))).toEqual([]);
  writeFileSync(join(folder, "rollcall.deploy.toml"), '[prod]\nworker = "rollcall-prod"\n');
  expect(await refused("--name", "prod")).toEqual([
    2,
    "file",
    expect.stringContaining("rollcall.deploy.toml: prod.database: "),
  ]);
});

test("a variable that is only for one machine, or that is a secret, is not deployed", async () => {
  const { stub, deploy } = await openStand();
  const open = await deploy("--var", "ALLOW_PRIVATE_ENDPOINTS=true", "--var", "OTLP_HEADERS=a=b");
  expect([open.code, open.stderr]).toEqual([1, expect.stringContaining("ALLOW_PRIVATE_ENDPOINTS is true")]);
  expect(open.stderr).toContain("OTLP_HEADERS is a secret but is in the file");
  const twice = await deploy("--var", "ROLLCALL_SECRET=abc");
  expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining("ROLLCALL_SECRET assigned to")]);
  expect(stub.seen.filter(({ kind }) => !kind.startsWith("GET"))).toEqual([]);
});

test("a domain of another Worker, or one with a DNS record, is not taken away", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const { stub, deploy, rollcall } = await openStand();
  stub.domains.set("www.example.com", "the-shop");
  const taken = await rollcall("deploy", "--name", "prod", "--domain", "www.example.com");
  expect([taken.code, taken.stderr]).toEqual([
    2,
    expect.stringContaining("--domain: the Worker the-shop has www.example.com"),
  ]);
  expect(stub.seen.filter(({ kind }) => !kind.startsWith("GET"))).toEqual([]);
  stub.records.add("mail.example.com");
  const recorded = await deploy("--domain", "mail.example.com");
  expect([recorded.code, recorded.stderr]).toEqual([4, expect.stringContaining("externally managed DNS records")]);
  expect([...stub.domains, ...stub.records]).toEqual([["www.example.com", "the-shop"], "mail.example.com"]);
  const own = await deploy("--domain", "rollcall.example.com");
  expect([own.code, stub.domains.get("rollcall.example.com")]).toEqual([0, "rollcall-prod"]);
  const again = await deploy();
  expect([again.code, stub.workers.get("rollcall-prod")?.published]).toEqual([0, false]);
});

test("a database that is not the recorded one is not written to, and an error ends with its own words", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const { stub, deploy, rollcall, folder, read } = await openStand();
  stub.databases.set("other", { name: "rollcall-prod", sqlite: new DatabaseSync(":memory:"), made: {} });
  const id = "0f1e2d3c-0000-4000-8000-000000000001";
  await writeDeployment(join(folder, "rollcall.deploy.toml"), "prod", { ...newRecord("prod"), database_id: id });
  const before = read("rollcall.deploy.toml");
  const replaced = await deploy();
  expect([replaced.code, replaced.stderr]).toEqual([1, expect.stringContaining(`this deployment has ${id}`)]);
  expect([stub.migrationsOf("rollcall-prod"), read("rollcall.deploy.toml")]).toEqual([[], before]);
  stub.refuseAll = true;
  const down = await rollcall("deploy", "status", "--name", "prod", "--json");
  const { error } = JSON.parse(down.stdout);
  expect([down.code, error.message]).toEqual([4, expect.stringMatching(/with 500: the stub is down \(1\)$/)]);
});

test("of two deploys that begin together, both use the secret that was written first", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const { stub, deploy, folder } = await openStand();
  const file = join(folder, "rollcall.prod.secrets.json");
  const secret = "0123456789abcdef".repeat(4);
  stub.afterEffect = async ({ kind }) => {
    // The last question before the secret is made.
    const { seen } = stub;
    if (kind !== "POST /d1/database/*/query" || seen.at(-2)?.kind !== "GET /workers/scripts/*/secrets") return;
    stub.afterEffect = async () => undefined;
    writeFileSync(file, JSON.stringify({ ROLLCALL_SECRET: secret }), { mode: 0o600 });
  };
  expect((await deploy()).code).toBe(0);
  expect(stub.workers.get("rollcall-prod")?.secrets["ROLLCALL_SECRET"]).toBe(secret);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ ROLLCALL_SECRET: secret });
});
