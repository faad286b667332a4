/** When a backup or a restore is refused, and what it says. */
import { expect, test } from "vitest";
import { TEST_HANGS_MS } from "../hang-limits.ts";
import { openBackupStand } from "./backup-stand.ts";

test("a restore needs a complete backup, the same secret and an empty deployment", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const stand = await openBackupStand();
  const prod = await stand.deployment("prod");
  await prod.found();
  const refused = async (name: string) => {
    const { code, stderr } = await stand.restore(name);
    expect(code).toBe(1);
    return stderr;
  };
  expect(await refused("prod")).toContain("the backup is not complete: it has no manifest.json");
  expect((await stand.backUp("prod")).code).toBe(0);
  expect(await refused("prod")).toContain("already has an organisation");
  await stand.deployment("other", "0e".repeat(32));
  expect(await refused("other")).toContain("another ROLLCALL_SECRET");

  const next = await stand.deployment("next");
  const [blob = ""] = stand.manifest().tables.find(({ name }: { name: string }) => name === "organizations").pages;
  const content = stand.store.objects.get(`daily/blobs/${blob}`) ?? new Uint8Array();
  stand.store.objects.set(`daily/blobs/${blob}`, Buffer.from("{}"));
  expect(await refused("next")).toContain(`blobs/${blob} is damaged`);
  stand.store.objects.set(`daily/blobs/${blob}`, content);
  expect((await stand.restore("next")).code).toBe(0);
  const done = await stand.restore("next");
  expect([done.code, done.stderr]).toEqual([0, expect.stringContaining("restored already")]);

  const guessed = await fetch(`${next.url}/operator/backup`, { headers: { authorization: "Bearer rk_guessed" } });
  expect(guessed.status).toBe(404);
  const [usage] = [await stand.rollcall("deploy", "backup", "--name", "prod", "--to", "daily")];
  expect([usage.code, usage.stderr]).toEqual([2, expect.stringContaining("--to: must be s3://BUCKET/PREFIX")]);
});
