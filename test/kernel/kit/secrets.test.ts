/** Everything derived from ROLLCALL_SECRET, before and after a rotation. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { leaseId, mintId, mintRunId, mintToken, rolloutId } from "../../../src/core/ids.ts";
import { isSameRequest } from "../../../src/kernel/kit/idempotency.ts";
import {
  isSameText,
  keyedHashes,
  leaseToken,
  macWithin,
  minting,
  readId,
  readTokenKind,
  seal,
  sealContext,
  sealKeyIds,
  unseal,
} from "../../../src/kernel/kit/secrets.ts";

const [OLD, NEW, OTHER] = ["0a", "1b", "2c"].map((byte) => byte.repeat(32)) as [string, string, string];
// Each of these lists all secrets that it has.
const { ROLLCALL_SECRETS_BEFORE: _, ...bindings } = env;
const before = { ...bindings, ROLLCALL_SECRET: OLD };
const during = { ...bindings, ROLLCALL_SECRET: NEW, ROLLCALL_SECRETS_BEFORE: `${OTHER}, ${OLD}` };
const after = { ...bindings, ROLLCALL_SECRET: NEW };

test("ids and tokens of the earlier secret are accepted until it is removed, and new ones are made under the new secret", () => {
  const id = mintId("ep", minting(before, 0));
  const token = mintToken("rk", minting(before, 0));
  expect([readId(during, id)?.kind, readTokenKind(during, token)]).toEqual(["endpoint", "rk"]);
  expect([readId(after, id), readTokenKind(after, token)]).toEqual([null, null]);
  const made = mintId("ep", minting(during, 0));
  expect([readId(after, made)?.kind, readId(before, made)]).toEqual(["endpoint", null]);
});

test("ids and lease tokens inside a run stay the same if the secret changes during the run", () => {
  const run = mintRunId(minting(before, 0));
  const place = { group: 3, slot: 1, attempt: 0 };
  const [rollout, again] = [before, during].map((where) => rolloutId(run, place, macWithin(where, run)));
  expect(again).toBe(rollout);
  expect(readId(during, rollout ?? "")).toEqual({ kind: "rollout", id: rollout, runId: run, ...place });
  const [lease, same] = [before, during].map((where) => leaseId(run, 2, macWithin(where, run)));
  expect(same).toBe(lease);
  expect(leaseToken(during, run, lease ?? "")).toBe(leaseToken(before, run, lease ?? ""));
  expect(() => macWithin(after, run)).toThrow(
    `${run} was created under a ROLLCALL_SECRET that this deployment does not`,
  );
});

test("a repeated request is recognised by its hash under any secret that is held, and by no other", () => {
  const [kept] = keyedHashes(before, "{}");
  const known = (where: typeof before, text: string) => {
    const [requestHash, ...requestHashesBefore] = keyedHashes(where, text);
    return isSameRequest(kept, { requestHash, requestHashesBefore });
  };
  expect([known(during, "{}"), known(during, "[]"), known(after, "{}")]).toEqual([true, false, false]);
});

test("a seal names its secret, and opens under that one, in its place", async () => {
  const context = sealContext({ orgId: "org", projectId: "pj" }, "ep");
  const sealed = await seal(before, "sk-1", context);
  expect(await unseal(during, sealed, context)).toBe("sk-1");
  const message = `a ROLLCALL_SECRET (key ${sealed.split(".")[0]}) that this deployment does not have`;
  await expect(unseal(after, sealed, context)).rejects.toThrow(message);
  for (const moved of [
    { orgId: "o2", projectId: "pj" },
    { orgId: "org", projectId: "p2" },
  ]) {
    await expect(unseal(during, sealed, sealContext(moved, "ep"))).rejects.toThrow();
  }
  expect(await unseal(after, await seal(during, "sk-1", context), context)).toBe("sk-1");
});

test("the id of a seal's key contains no part of a secret, and differs between secrets", () => {
  const ids = sealKeyIds(during);
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) expect(`${OLD}${NEW}${OTHER}`).not.toContain(id);
});

test.each([
  ["ROLLCALL_SECRET", { ROLLCALL_SECRET: "short" }],
  ["ROLLCALL_SECRET", { ROLLCALL_SECRET: NEW.toUpperCase() }],
  ["ROLLCALL_SECRETS_BEFORE", { ROLLCALL_SECRETS_BEFORE: `${OLD},nothing` }],
  ["ROLLCALL_SECRETS_BEFORE", { ROLLCALL_SECRETS_BEFORE: Array(5).fill(OLD).join(" ") }],
])("%s that is malformed is refused by its name: %j", (name, changes) => {
  expect(() => minting({ ...before, ...changes }, 0)).toThrow(
    new RegExp(`^${name} must be .* wrangler secret put ${name}$`),
  );
});

test("an empty list of earlier secrets adds no secret", () => {
  expect(sealKeyIds({ ...after, ROLLCALL_SECRETS_BEFORE: " " })).toEqual(sealKeyIds(after));
});

test("texts of any length are compared completely", () => {
  expect([isSameText("a", "a"), isSameText("a", "b"), isSameText("", "a"), isSameText("ab", "a")]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});
