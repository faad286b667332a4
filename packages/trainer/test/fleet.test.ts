/** The trainer's weights on the real policy server. */

import { randomWeights } from "@rollcall/policy/test/scripted-weights";
import { serve } from "@rollcall/policy/test/served-policy";
import { expect, test } from "vitest";
import { type Applied, Fleet, packWeights } from "../fleet.ts";

function fleetOf(url: string) {
  const applied: Applied[] = [];
  const said: string[] = [];
  const fleet = new Fleet(
    [{ id: "policy", url }],
    async (report) => applied.push(report),
    (line) => said.push(line),
  );
  return { fleet, applied, said };
}

test("a replica gets new weights once, with the version's number, and is reported with their digest", async () => {
  const served = await serve(randomWeights());
  const { fleet, applied } = fleetOf(served.url);
  const packed = packWeights(3, randomWeights(2));
  const { sha256 } = packed;
  fleet.set(packed);
  await fleet.sync();
  expect(await fleet.sync()).toBe(true);
  expect(served.engine.weightVersion).toBe("3");
  expect(served.engine.weightsDigest).toBe(sha256);
  expect(applied).toEqual([{ state: "applied", version: 3, replica: "policy", sha256 }]);
});

test("a restarted replica gets them again, and is reported again", async () => {
  const served = await serve(randomWeights());
  const { fleet, applied } = fleetOf(served.url);
  const packed = packWeights(1, randomWeights(2));
  const { sha256 } = packed;
  fleet.set(packed);
  await fleet.sync();
  await served.engine.updateWeights(randomWeights(), "base");
  await fleet.sync();
  expect([served.engine.weightVersion, served.engine.weightsDigest]).toEqual(["1", sha256]);
  expect(applied.map(({ version }) => version)).toEqual([1, 1]);
});

test("an unreachable replica is mentioned once, delays no other and is not reported", async () => {
  const { fleet, applied, said } = fleetOf("http://127.0.0.1:9");
  fleet.set(packWeights(1, randomWeights()));
  expect([await fleet.sync(), await fleet.sync()]).toEqual([false, false]);
  expect(applied).toEqual([]);
  expect(said).toHaveLength(1);
});
