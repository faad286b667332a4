/** Requests of two organisations in one process. */
import { beforeAll, expect, test } from "vitest";
import { chargeOperations } from "../../../src/billing/routes/charges.ts";
import { rolloutListOperations } from "../../../src/kernel/http/rollout-lists.ts";
import { runOperations } from "../../../src/kernel/http/runs.ts";
import { PROCESS_PACE } from "../../../src/kernel/kit/request-pace.ts";
import { refuse } from "../../../src/kernel/messages/refusal.ts";
import { openTestApi } from "./test-api.ts";

beforeAll(() => {
  // The real function, instead of the one from apply-migrations.ts.
  Reflect.deleteProperty(PROCESS_PACE, "enter");
});

test("one organisation's requests that start runs wait while another organisation sends requests", async () => {
  const acceptRun = async () => refuse("conflict", "there is one", null);
  const greedy = await openTestApi({ acceptRun });
  const other = await openTestApi();
  await other.ask("/v1/organization");
  const body = {
    environment: "calculator",
    model: "m",
    endpoint: { base_url: "https://model.test/v1" },
    num_examples: 1,
  };
  let answered = 0;
  const begun = Array.from({ length: 40 }, async () => {
    const { status } = await greedy.post("/v1/runs", body);
    answered += 1;
    return status;
  });
  await begun[0];
  const read = await other.ask("/v1/organization");
  expect(read.status).toBe(200);
  expect(answered).toBeLessThan(40);
  expect(new Set(await Promise.all(begun))).toEqual(new Set([409]));
});

test("operations that read many rows of a run state their cost", () => {
  const all = [...runOperations, ...rolloutListOperations, ...chargeOperations];
  for (const id of ["listRollouts", "listGroups", "getHistogram", "auditRun", "auditCharges"]) {
    expect([id, all.find((one) => one.id === id)?.costMs ?? 0]).toEqual([id, expect.toSatisfy((ms) => ms >= 20)]);
  }
});
