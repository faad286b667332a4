/** Bundles are validated in isolates: whatever they do, there is a record. */
import { env } from "cloudflare:workers";
import { expect, inject, test } from "vitest";
import type { JsonObject } from "../../src/contract/json.ts";
import { ENVIRONMENT_PROTOCOL } from "../../src/core/protocol/environment-code.ts";
import { type ToValidate, validateBundle } from "../../src/hub/validate-bundle.ts";

function validated(id: string, args: JsonObject = {}, more: Partial<ToValidate> = {}) {
  const bundle = inject("bundles")[id];
  if (bundle === undefined) throw new Error(`no bundle of ${id}`);
  return validateText(bundle.text, args, more);
}

function validateText(text: string, args: JsonObject = {}, more: Partial<ToValidate> = {}) {
  return validateBundle(
    env,
    "org_validation",
    { digest: "sha256:validated", text: async () => text },
    {
      args,
      rows: [],
      ...more,
    },
  );
}

function checksOf({ checks }: Awaited<ReturnType<typeof validated>>) {
  return Object.fromEntries(checks.map(({ name, status, message }) => [name, [status, message]]));
}

test("a good bundle passes every check, and its record has the measures of its plays", async () => {
  const record = await validated("calculator", {}, { limits: { rows: 3 } });
  const { checks, ...measures } = record;
  expect(checks.filter(({ status }) => status !== "ok")).toEqual([]);
  expect(measures).toEqual({
    examples: 3,
    policies: {
      gold: { mean: expect.closeTo(1.1), n: 3 },
      null: { mean: expect.any(Number), n: 3 },
      constant: { mean: expect.any(Number), n: 3 },
      echo: { mean: expect.any(Number), n: 3 },
      random: { mean: expect.any(Number), n: 3 },
    },
    rewards: { least: expect.any(Number), most: expect.closeTo(1.1) },
    equal_rows: 0,
    failed_functions: [],
    failed_functions_left_out: 0,
    judgements: [],
    judgements_left_out: 0,
    deterministic: true,
    result: "ready",
    ok: true,
    protocol: ENVIRONMENT_PROTOCOL,
    seeds: { rows: 0, rollouts: 0, random: "validate" },
    calls_per_turn: expect.any(Number),
    wall_ms_per_turn: expect.any(Number),
    cpu_ms_per_turn: null,
  });
  expect(Number(measures.calls_per_turn)).toBeGreaterThan(1);
});

test("without the policy that solves a task, nothing says that its gold plays are right", async () => {
  const record = await validated("guess-number", {}, { limits: { rows: 2 } });
  expect(checksOf(record)["gold"]).toEqual(["unchecked", "no row has an answer; a goldPolicy is not played here"]);
  expect(record).toMatchObject({
    ok: true,
    result: "unchecked",
    examples: 2,
    policies: { gold: { mean: null, n: 0 } },
  });
});

test("a constant reward is an error", async () => {
  const record = await validated("faulty", { kind: "constant" });
  expect(record).toMatchObject({ ok: false, rewards: { least: 1, most: 1 }, equal_rows: 1 });
  expect(checksOf(record)["variety"]).toEqual(["error", expect.stringContaining("every play scores 1")]);
});

test("a reward that raises is named with its number of failures and its first error", async () => {
  const record = await validated("faulty", { kind: "raises" });
  expect(record.failed_functions).toEqual([
    { name: "right_0", count: 11, first: expect.stringContaining("no digits") },
  ]);
  expect(checksOf(record)["rewards"]).toEqual(["error", expect.stringContaining("row 0, null play: right_0: ")]);
});

test("rows that another isolate makes in another way are not deterministic", async () => {
  const record = await validated("faulty", { kind: "random" });
  expect(record).toMatchObject({ ok: false, deterministic: false });
  expect(checksOf(record)["reset"]).toEqual(["error", expect.stringMatching(/^row 0: row\.question is .* and then /)]);
});

test("a bundle that needs a secret or the network is not played, which is no error", async () => {
  const record = await validated("probing", {}, { rows: [{ question: "fetch" }] });
  expect(checksOf(record)).toMatchObject({
    needs: ["unchecked", "fetch is not given to a validation (and 1 more)"],
    rows: ["ok", "1 fit the schema and are JSON"],
    rewards: ["skipped", "nothing was played: fetch is not given to a validation"],
  });
  expect(record).toMatchObject({ ok: true, examples: 0, deterministic: null, calls_per_turn: null });
});

test("a reward that never settles ends when its time is over", async () => {
  const record = await validated("faulty", { kind: "hangs" }, { limits: { stepMs: 20, rows: 1 } });
  expect(record.ok).toBe(false);
  expect(JSON.stringify(record.checks)).toContain("0.02 s");
});

const ENTRY = 'import { WorkerEntrypoint } from "cloudflare:workers"; export default class extends WorkerEntrypoint';

test.each([
  ["throws while it is loaded", "throw new Error('broken from the start')", /broken from the start/],
  ["serves nothing", `${ENTRY} {}`, /its isolate failed/],
  [
    "answers nonsense",
    `${ENTRY} { outline() { return 1; } checkArguments() { return null; } describe() { return { protocol: 1 }; } }`,
    /./,
  ],
])("a bundle that %s gives a record with an error", async (_what, text, message) => {
  const record = await validateText(text);
  expect(record).toMatchObject({ ok: false, examples: 0 });
  expect(Object.values(checksOf(record))).toEqual([["error", expect.stringMatching(message)]]);
});

test("a bundle that never answers is given up when the time of the validation is over", async () => {
  const silent = `${ENTRY} { outline() { return new Promise((resolve) => setTimeout(resolve, 1e9)); } }`;
  const record = await validateText(silent, {}, { limits: { totalMs: 20 } });
  expect(checksOf(record)).toEqual({ finished: ["error", "the validation took more than 0.02 s"] });
});

test("a validation that makes too many calls keeps what was played before", async () => {
  const record = await validated("faulty", { kind: "none" }, { limits: { calls: 150 } });
  expect(checksOf(record)["finished"]).toEqual(["error", "the validation made more than 150 calls"]);
  expect(record.policies.gold.n).toBeGreaterThan(0);
  expect(record.ok).toBe(false);
});

test("arguments that do not fit are an error of the build", async () => {
  expect(checksOf(await validated("faulty", { kind: "none", more: 1 }))).toEqual({
    build: ["error", "it cannot be built: args.more: is not a known argument"],
  });
});

test("long names and errors are cut, so that a record has at most 64 KiB", async () => {
  const record = await validated("faulty", { kind: "long" });
  expect(record).toMatchObject({ failed_functions_left_out: 10 });
  expect(record.failed_functions).toHaveLength(10);
  expect(new TextEncoder().encode(JSON.stringify(record)).length).toBeLessThan(64 * 1024);
});

test("a passing fault of the platform below is thrown: it says nothing about the bundle", async () => {
  const loader: unknown = {
    get: () => {
      throw Object.assign(new Error("internal error"), { retryable: true });
    },
  };
  const failing = { ...env, LOADER: loader as WorkerLoader };
  const bundle = { digest: "sha256:validated", text: async () => "" };
  await expect(validateBundle(failing, "org_validation", bundle, { args: {}, rows: [] })).rejects.toThrow("internal");
});
