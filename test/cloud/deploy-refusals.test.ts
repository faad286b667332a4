/** What `rollcall deploy` refuses before it changes anything at Cloudflare. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { command } from "../cli/run-rollcall.ts";
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
  for (const name of ["Prod", "local", "x-preview", "a-name-that-is-much-too-long"]) {
    expect(await refused("--name", name)).toEqual([2, "name", expect.stringContaining(`--name: ${name} must be`)]);
  }
  expect((await refused("--name", "prod", "--location", "mars")).slice(0, 2)).toEqual([2, "location"]);
  expect((await refused("--name", "prod", "--location", "weur", "--jurisdiction", "eu")).slice(0, 2)).toEqual([
    2,
    "jurisdiction",
  ]);
  expect((await refused("--name", "prod", "--url", "example.com")).slice(0, 2)).toEqual([2, "url"]);
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
