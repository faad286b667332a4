import { createHmac, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  databaseNumberIn,
  leaseId,
  type Mac,
  mintId,
  mintRunId,
  mintToken,
  parseId,
  placeOfStoredId,
  rolloutId,
  tokenKind,
} from "../../src/core/ids.ts";

const mac = keyed("a secret of ours");

function keyed(secret: string): Mac {
  return (text) => {
    const digest = createHmac("sha256", secret).update(text).digest("hex");
    return BigInt(`0x${digest}`).toString(32);
  };
}

function runAt(now: number): string {
  return mintRunId({ now, random: randomBytes, mac });
}

const place = fc.record({
  group: fc.nat(10 ** 9),
  slot: fc.nat(1023),
  attempt: fc.nat(20),
});

test("the format of an id never changes", () => {
  const zeros = (bytes: number) => new Uint8Array(bytes);
  const run = mintRunId({ now: 1_763_719_200_000, random: zeros, mac: () => "abcdefgh" });
  expect(run).toBe("run_01kajxpf800000000000000000abcdefgh");
  const rollout = rolloutId(run, { group: 36, slot: 1, attempt: 0 }, () => "hgfedcba99");
  expect(rollout).toBe("ro_01kajxpf800000000000000000_10_1_0_hgfedcba");
});

test("the number of a D1 database is in an id and a token, and covered by their code", () => {
  const minting = { now: 1_763_719_200_000, random: randomBytes, mac };
  for (const database of [0, 1, 31, 99]) {
    const [id, token] = [mintId("org", { ...minting, database }), mintToken("rk", { ...minting, database })];
    expect([id, token].map(databaseNumberIn)).toEqual([database, database]);
    expect(parseId(id, mac)).toEqual({ kind: "organization", id });
    expect(tokenKind(token, mac)).toBe("rk");
    if (database === 0) continue;
    for (const other of ["", "2_", "0_", "01_", "100_"]) {
      expect(parseId(id.replace(`${database}_`, other), mac)).toBeNull();
      expect(tokenKind(token.replace(`${database}_`, other), mac)).toBeNull();
    }
  }
  expect(mintId("org", minting)).toMatch(/^org_[^_]+$/);
  for (const database of [-1, 1.5, 100]) expect(() => mintId("org", { ...minting, database })).toThrow(RangeError);
  expect(["org_x", "org_1", "", "_1_", "run_12345678-1_2"].map(databaseNumberIn)).toEqual([0, 0, 0, 0, 0]);
});

test("a run's id is recognised", () => {
  const id = runAt(1_763_719_200_000);
  expect(parseId(id, mac)).toEqual({ kind: "run", id });
});

test("a rollout's id has its run and its place, and is always the same", () => {
  fc.assert(
    fc.property(place, fc.nat(2 ** 31), (where, now) => {
      const runId = runAt(now);
      const id = rolloutId(runId, where, mac);
      expect(rolloutId(runId, where, mac)).toBe(id);
      expect(parseId(id, mac)).toEqual({ kind: "rollout", id, runId, ...where });
    }),
  );
});

test("the place in a stored rollout id is parsed without checking its signature, and any other text is an error", () => {
  fc.assert(
    fc.property(place, fc.nat(2 ** 31), (where, now) => {
      expect(placeOfStoredId(rolloutId(runAt(now), where, mac))).toEqual(where);
    }),
  );
  const run = runAt(1_763_719_200_000);
  for (const text of ["", run, leaseId(run, 1, mac), `${rolloutId(run, { group: 0, slot: 0, attempt: 0 }, mac)}x`]) {
    expect(() => placeOfStoredId(text)).toThrow("not the id of a rollout");
  }
});

test("ids sort by age", () => {
  fc.assert(
    fc.property(fc.nat(2 ** 31), fc.integer({ min: 1, max: 2 ** 31 }), (now, later) => {
      expect(runAt(now) < runAt(now + later)).toBe(true);
    }),
  );
});

test("an id with any changed character is unknown", () => {
  const run = runAt(1_763_719_200_000);
  const rollout = rolloutId(run, { group: 12, slot: 3, attempt: 1 }, mac);
  const tampering = fc.record({
    id: fc.constantFrom(run, rollout),
    at: fc.nat(rollout.length - 1),
    character: fc.constantFrom(..."0123456789abcdefghijklmnopqrstuvwxyz_-ABZ. "),
  });
  fc.assert(
    fc.property(tampering, ({ id, at, character }) => {
      const changed = id.slice(0, at) + character + id.slice(at + 1);
      fc.pre(changed !== id);
      expect(parseId(changed, mac)).toBeNull();
    }),
  );
});

test("an id made with another secret is unknown", () => {
  const foreign = mintRunId({ now: 1, random: randomBytes, mac: keyed("another") });
  expect(parseId(foreign, mac)).toBeNull();
});

test("the code of a run is not valid for a rollout of it, and vice versa", () => {
  const run = runAt(1);
  const [core, code] = [run.slice(4, -8), run.slice(-8)];
  expect(parseId(`ro_${core}_0_0_0_${code}`, mac)).toBeNull();
  const rollout = rolloutId(run, { group: 0, slot: 0, attempt: 0 }, mac);
  expect(parseId(`run_${core}${rollout.slice(-8)}`, mac)).toBeNull();
});

test("any other text is null and never throws", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(parseId(text, mac)).toBeNull();
      expect(parseId(`run_${text}`, mac)).toBeNull();
      expect(parseId(`ro_${text}`, mac)).toBeNull();
    }),
  );
  const run = runAt(1);
  for (const text of ["", "run_", `${run}\n`, ` ${run}`, run.toUpperCase(), run.repeat(1000)]) {
    expect(parseId(text, mac)).toBeNull();
  }
});

test("a place has one spelling: leading zeros are invalid, even with a right code", () => {
  const text = `ro_${runAt(1).slice(4, -8)}_00_0_0`;
  expect(parseId(`${text}_${mac(text).slice(0, 8)}`, mac)).toBeNull();
});

test.each([
  ["ds", "dataset"],
  ["ep", "endpoint"],
  ["sec", "secret"],
])("an id of the kind %s is minted in the same format and recognised as a %s", (prefix, kind) => {
  const id = mintId(prefix, { now: 1, random: randomBytes, mac });
  expect(id).toMatch(new RegExp(`^${prefix}_[0-9a-z]{34}$`));
  expect(parseId(id, mac)).toEqual({ kind, id });
  expect(parseId(id.replace(prefix, "run"), mac)).toBe(null);
});

test("an id of a kind that is never looked up is null", () => {
  const id = mintId("aud", { now: 1, random: randomBytes, mac });
  expect(id).toMatch(/^aud_[0-9a-z]{34}$/);
  expect(parseId(id, mac)).toBe(null);
});

test("an invalid place, and an invalid run, are programming errors", () => {
  const run = runAt(1);
  for (const group of [-1, 0.5, 36 ** 7, Number.NaN]) {
    expect(() => rolloutId(run, { group, slot: 0, attempt: 0 }, mac)).toThrow(RangeError);
  }
  expect(() => rolloutId("run_x", { group: 0, slot: 0, attempt: 0 }, mac)).toThrow(TypeError);
});

test("a keyed hash that is too short is refused", () => {
  expect(() => mintRunId({ now: 1, random: randomBytes, mac: () => "short" })).toThrow(RangeError);
});

test("the id of a lease has its run and its number, and is always the same", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 ** 9 }), (serial) => {
      const runId = runAt(1_763_719_200_000);
      const id = leaseId(runId, serial, mac);
      expect(leaseId(runId, serial, mac)).toBe(id);
      expect(parseId(id, mac)).toEqual({ kind: "lease", id, runId, serial });
      expect(parseId(id.replace("ls_", "ro_"), mac)).toBeNull();
      expect(parseId(id, keyed("another"))).toBeNull();
    }),
    { numRuns: 20 },
  );
});
