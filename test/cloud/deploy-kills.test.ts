/**
 * `rollcall deploy` is killed after each kind of request that it makes, before it gets the reply, and is then repeated.
 * The end is always the same as without a kill.
 */
import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { openStand, type Stand } from "./stand.ts";

const HOUR = 60 * 60_000;

/** Everything that a deployment leaves, at Cloudflare and on this disk. */
function endOf({ stub, prod, read, folder }: Stand) {
  const { profiles } = JSON.parse(read("config.json"));
  const organizations = stub.database("rollcall-prod")?.prepare("SELECT id, name FROM organizations").all();
  return {
    ...stub.state(),
    ...{ organizations, file: read("rollcall.deploy.toml").replaceAll(prod.url, "URL") },
    secrets: Object.keys(JSON.parse(read("rollcall.prod.secrets.json"))),
    profiles: Object.keys(profiles),
    written: readdirSync(folder).sort(),
    secretIsKept:
      stub.workers.get("rollcall-prod")?.secrets["ROLLCALL_SECRET"] ===
      JSON.parse(read("rollcall.prod.secrets.json")).ROLLCALL_SECRET,
  };
}

test("a deployment that is killed at any step is finished by the same command", { timeout: HOUR }, async () => {
  const whole = await openStand();
  expect((await whole.deploy()).code).toBe(0);
  const end = endOf(whole);
  const kinds = whole.stub.seen.map(({ kind }) => kind);
  // After the first of each kind, and after the last of those that change something.
  const cuts = [...new Set(kinds)].flatMap((kind) => {
    const times = kinds.filter((one) => one === kind).length;
    return (kind.startsWith("GET") ? [1] : [...new Set([1, times])]).map((nth) => ({ kind, nth }));
  });
  expect(cuts.length).toBeGreaterThan(25);
  const finish = async ({ kind, nth }: (typeof cuts)[number]) => {
    const stand = await openStand();
    stand.killAt((one) => one.kind === kind && stand.stub.seen.filter((seen) => seen.kind === kind).length === nth);
    const cutOff = await stand.deploy();
    const why = `killed after ${kind}, number ${nth}`;
    expect(cutOff.code, why).toBe(null);
    const again = await stand.deploy();
    expect([again.code, again.stderr], why).toEqual([0, expect.any(String)]);
    expect(endOf(stand), why).toEqual(end);
    expect(again.stdout, why).not.toContain("✗");
  };
  // Two at a time: most of each is the start of processes.
  const left = [...cuts];
  const lane = async () => {
    for (let cut = left.shift(); cut !== undefined; cut = left.shift()) await finish(cut);
  };
  await Promise.all([lane(), lane()]);
});
