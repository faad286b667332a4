/** A paid plan: turns billing on before its run begins, and reads the ledger once it has ended. */
import { setTimeout as pause } from "node:timers/promises";
import type { ChargeAudit } from "../../src/contract/audit.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import type { Served } from "../local/served-platform.ts";

const PAID_IN = 1_000_000_000;
const ASK_EVERY_MS = 250;
const SECOND_MS = 1000;

/** Odd numbers, so that rounding differs from line to line. */
const TOKENS = {
  input_per_mtok_micros: 1_370_000,
  cached_input_per_mtok_micros: 170_000,
  output_per_mtok_micros: 5_130_000,
};
const FEES = {
  ...{ rollout_micros: 61, thousand_turns_micros: 12_345, scoring_micros: 23 },
  ...{ push_micros: 1009, gb_day_micros: 1013 },
};

/** The state of the ledger for a run. */
export interface Billed {
  readonly paid_in: number;
  readonly balance: number;
  readonly reserved: number;
  /** Ends that were not in the ledger in time. */
  readonly unsettled: number;
  /** The sum of its rollouts' charges, computed again from their trajectories. */
  readonly charged: number;
  /** The differences between the run's rows, the journal entries and the sums of the ledger. */
  readonly differences: readonly string[];
}

type Where = Pick<Served, "url" | "key">;

/** For every organisation of the platform, before any of them begins a run. `models`: URLs and names. */
export async function setPrices(operator: Where, models: readonly (readonly [string, string])[]): Promise<void> {
  const effective_from = Math.ceil(Date.now() / SECOND_MS) + 1;
  const list = models.map(([base_url, model]) => ({ base_url, model, ...TOKENS }));
  await ask(operator, "POST", "/v1/prices", { version: "faults", effective_from, fees: FEES, models: list });
  await pause(effective_from * SECOND_MS - Date.now() + SECOND_MS);
}

/** Turns billing on for an organisation, and pays in enough for any plan. */
export async function payFor(operator: Where, organization: string): Promise<void> {
  await ask(operator, "PATCH", `/v1/organizations/${organization}`, { billing: "prepaid" });
  await ask(operator, "POST", "/v1/top-ups", { organization, amount_micros: PAID_IN, note: "faults" });
}

/** The id of the key's organisation. */
export async function organizationOf(where: Where): Promise<string> {
  return (await ask<{ organization_id: string }>(where, "GET", "/v1/balance")).organization_id;
}

/** For a run that has ended: waits until the ledger has all of it. */
export async function readBilled(where: Where, run: string): Promise<Billed> {
  const deadline = Date.now() + WAIT_HANGS_MS;
  for (;;) {
    const billed = await readOnce(where, run);
    if ((billed.unsettled === 0 && billed.reserved === 0) || Date.now() > deadline) return billed;
    await pause(ASK_EVERY_MS);
  }
}

async function readOnce(where: Where, run: string): Promise<Billed> {
  const differences: string[] = [];
  let [charged, unsettled] = [0, 0];
  for (let after: number | null = 0; after !== null; ) {
    const slice: ChargeAudit = await ask<ChargeAudit>(where, "GET", `/v1/runs/${run}/charges?after=${after}`);
    charged += slice.charged_micros;
    unsettled += slice.unsettled;
    differences.push(...slice.differences.map((one) => JSON.stringify(one)));
    after = slice.next;
  }
  const verified = await ask<Verified>(where, "GET", "/v1/ledger/verification");
  differences.push(...verified.differences.map((one) => JSON.stringify(one)));
  const standing = await ask<Standing>(where, "GET", "/v1/balance");
  const { balance_micros: balance, reserved_micros: reserved } = standing;
  return { paid_in: PAID_IN, balance, reserved, unsettled, charged, differences };
}

interface Verified {
  readonly differences: readonly object[];
}
interface Standing {
  readonly balance_micros: number;
  readonly reserved_micros: number;
}

async function ask<T>({ url, key }: Where, method: string, path: string, body?: object): Promise<T> {
  const json = body === undefined ? {} : { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
  const response = await fetch(new URL(path, url), {
    method,
    headers: { authorization: `Bearer ${key}`, "rollcall-project": "default", ...json },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
}
