/** The key of a state directory across boots. */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { readReadyFile } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { testPort } from "./test-port.ts";

let platform: Platform | null = null;
afterEach(async () => platform?.stop());

const directory = mkdtempSync(join(tmpdir(), "rollcall-local-key-"));
const log = (line: string) => process.stderr.write(`${line}\n`);

/** Boots the next platform and checks that every place that names the key agrees. Returns the key and its id. */
async function nextBoot() {
  await platform?.stop();
  platform = await bootPlatform({ directory, port: testPort(48), log });
  const { url, key } = platform;
  expect(readFileSync(join(directory, "api-key"), "utf8")).toBe(key);
  expect(readReadyFile(directory)?.key).toBe(key);
  const client = new RollcallClient({ baseUrl: url, apiKey: key });
  const { who, scopes } = await client.whoAmI();
  expect(scopes).toEqual(["admin", "operator"]);
  return { key, client, id: who };
}

async function isRefused(key: string): Promise<void> {
  const client = new RollcallClient({ baseUrl: platform?.url ?? "", apiKey: key });
  await expect(client.whoAmI()).rejects.toMatchObject({ status: 401 });
}

test("a revoked, rotated or changed local key never comes back: the next boot creates another", async () => {
  const first = await nextBoot();
  await first.client.keys.revoke(first.id);
  const second = await nextBoot();
  await isRefused(first.key);
  await second.client.keys.rotate(second.id, {});
  const third = await nextBoot();
  await isRefused(second.key);
  await third.client.keys.update(third.id, { scopes: ["runs:read"] });
  const fourth = await nextBoot();
  await isRefused(third.key);
  expect(new Set([first, second, third, fourth].map(({ key }) => key)).size).toBe(4);
  const fifth = await nextBoot();
  expect([fifth.key, fifth.id]).toEqual([fourth.key, first.id]);
});
