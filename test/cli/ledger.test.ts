/** `rollcall ledger verify` and amounts of dollars: in this process, against answers in the platform's format. */
import { expect, test } from "vitest";
import { readCommandLine } from "../../src/cli/command-line.ts";
import { LEDGER_COMMANDS, microsOf } from "../../src/cli/commands/ledger.ts";
import { type LedgersAsked, verifyLedgers } from "../../src/cli/ledger-verification.ts";
import { dollarsText } from "../../src/cli/terminal/format.ts";
import { recorded } from "../sdk/recording-fetch.ts";

const SOUND = {
  ...{ object: "ledger_verification", organization_id: "org_1", ok: true, entries: 4 },
  ...{ balance_micros: 90, recomputed_micros: 90, differences: [] as object[] },
};
const SLICE = {
  object: "charge_audit",
  checked: 2,
  charged_micros: 5,
  differences: [] as object[],
  unsettled: 0,
  next: null,
};

/** A platform with two projects, each with a run. */
function platform(replies: { readonly verification?: object[]; readonly charges?: (path: string) => object }) {
  const verifications = [...(replies.verification ?? [])];
  const { client, asked } = recorded(({ path, headers }) => {
    const { pathname } = new URL(path, "http://x");
    const page = (...ids: string[]) =>
      Response.json({ data: ids.map((id) => ({ id })), has_more: false, last_id: ids.at(-1) });
    if (pathname === "/v1/whoami") return Response.json({ organization: { id: "org_1" } });
    if (pathname === "/v1/projects") return page("pj_1", "pj_2");
    if (pathname === "/v1/runs") return page(`run_of_${headers.get("rollcall-project") ?? "none"}`);
    if (pathname.endsWith("/charges")) return Response.json(replies.charges?.(path) ?? SLICE);
    return Response.json(verifications.shift() ?? SOUND);
  });
  const said: string[] = [];
  const verify = (given: Partial<LedgersAsked> = {}) => {
    const asking = { organizations: null, deep: false, waitMs: 0, log: (line: string) => said.push(line), ...given };
    return verifyLedgers({ client, inProject: () => client, signal: new AbortController().signal }, asking);
  };
  return { verify, asked, said };
}

test("a ledger that adds up is good, with its entries and its balance", async () => {
  expect(await platform({}).verify()).toEqual({
    ...{ ok: true, organizations: 1, entries: 4, balance_micros: { org_1: 90 } },
    ...{ differences: [], undrained: 0, rollouts_checked: 0 },
  });
});

test("every named ledger is checked, and one difference fails the whole verification", async () => {
  const wrong = { what: "lines do not add up", entry: 3, expected: 0, actual: 5 };
  const other = { ...SOUND, organization_id: "org_2", differences: [wrong], recomputed_micros: 85 };
  const { verify, asked } = platform({ verification: [SOUND, other] });
  const found = await verify({ organizations: ["org_1", "org_2"] });
  expect(asked.map(({ path }) => new URL(path, "http://x").searchParams.get("organization"))).toEqual([
    "org_1",
    "org_2",
  ]);
  expect(found).toMatchObject({ ok: false, organizations: 2, entries: 8, balance_micros: { org_1: 90, org_2: 90 } });
  expect(found.differences).toEqual([
    { org: "org_2", what: "lines do not add up", entry_id: "3", expected: 0, actual: 5 },
    { org: "org_2", what: "the balance differs from the sum of its entries", entry_id: null, expected: 85, actual: 90 },
  ]);
});

test("with deep, every slice of every run of every project is checked, and a wrong charge is named", async () => {
  const wrong = { rollout_id: "ro_1", what: "turns", expected: 12, actual: 24 };
  const charges = (path: string) =>
    path.includes("after=") ? { ...SLICE, differences: [wrong] } : { ...SLICE, next: 2 };
  const { verify, asked } = platform({ charges });
  const found = await verify({ deep: true });
  expect(found).toMatchObject({ ok: false, rollouts_checked: 8 });
  expect(found.differences[0]).toEqual({ org: "org_1", what: "ro_1: turns", entry_id: null, expected: 12, actual: 24 });
  expect(asked.filter(({ path }) => path.includes("/charges")).length).toBe(4);
});

test("recent charges are waited for, and are an error if they are not there in time", async () => {
  const late = { ...SLICE, unsettled: 2 };
  const slices = [late, late];
  const waited = platform({ charges: () => slices.shift() ?? SLICE });
  expect(await waited.verify({ deep: true, waitMs: 60_000 })).toMatchObject({ ok: true, undrained: 0 });
  expect(waited.said).toEqual(["4 not in the ledger yet"]);
  const { verify } = platform({ charges: () => late });
  expect(await verify({ deep: true })).toMatchObject({ ok: false, undrained: 4, differences: [] });
});

test("dollars are read and written exactly", () => {
  const spec = LEDGER_COMMANDS.find(({ name }) => name === "top-up");
  if (spec === undefined) throw new Error("no such command");
  const read = (text: string) => microsOf(readCommandLine(spec, ["org_1", `--amount=${text}`]), "amount");
  const amounts = {
    "25": 25_000_000,
    "0.50": 500_000,
    "-0.000260": -260,
    $1: 1_000_000,
    "999999999.999999": 999_999_999_999_999,
  };
  for (const [text, micros] of Object.entries(amounts)) expect(read(text)).toBe(micros);
  for (const wrong of ["", "1.0000001", "1e3", "0x10", "1,5", ".5", "--1", "1 "])
    expect(() => read(wrong)).toThrow(/is not an amount/);
  expect([0, 5, -260, 1_500_000, 1_234_567_000_000].map(dollarsText)).toEqual([
    ...["$0.00", "$0.000005", "−$0.00026", "$1.50", "$1,234,567.00"],
  ]);
});
