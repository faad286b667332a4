/**
 * Organisations that pay: billing is turned on before anything of theirs is read, money is paid in, and their ledger.
 */
import { env } from "cloudflare:workers";
import { ledgerObject } from "../../src/billing/rpc.ts";
import type { BillingMode, LedgerEntry } from "../../src/contract/money.ts";
import type { RunObject } from "../../src/kernel/run/object.ts";
import { ACCOUNTING_HOOKS } from "../../src/kernel/run/object.ts";
import { RunStore } from "../../src/kernel/run/store.ts";
import { openPlatform, type TestApi } from "./platform.ts";

/** A new organisation with this balance. */
export async function openPaying(micros: number, billing: BillingMode = "prepaid"): Promise<TestApi> {
  const api = await openPlatform();
  const { orgId } = api.scope;
  await env.DB.prepare("update organizations set billing = ? where id = ?").bind(billing, orgId).run();
  await ledgerObject(env, orgId).changed();
  if (micros > 0) await payIn(api, micros);
  return api;
}

export async function payIn({ scope }: TestApi, amount_micros: number): Promise<void> {
  await ledgerObject(env, scope.orgId).post({
    ...{ orgId: scope.orgId, kind: "top_up", source_id: crypto.randomUUID(), period: "", project_id: null },
    ...{ amount_micros, against: "paid_in/test", note: null },
  });
}

/** Journal entries of the run, the oldest first. */
export async function entriesOf({ scope }: TestApi, run_id: string): Promise<LedgerEntry[]> {
  const query = { before: null, limit: 1000, kind: null, source_id: null, run_id };
  const { entries } = await ledgerObject(env, scope.orgId).entries(query);
  return entries.toSorted((one, other) => one.number - other.number);
}

export function balanceOf({ scope }: TestApi) {
  return ledgerObject(env, scope.orgId).balance(scope.orgId);
}

/** Lets the run report its charges to the ledger, as often as needed. Afterwards its clock is the real one again. */
export async function settle(api: TestApi, id: string, tries = 5): Promise<boolean> {
  return await api.inRun(id, (run, { storage }) => settleIn(run, storage, tries));
}

/** The same inside the object, for an instance of the caller. */
export async function settleIn(run: RunObject, storage: DurableObjectStorage, tries = 5): Promise<boolean> {
  const started = Date.now();
  for (let at = 1; at <= tries; at += 1) {
    run.now = () => started + at * 120_000;
    await run.alarm();
    if (isSettled(storage)) break;
  }
  run.now = () => Date.now();
  return isSettled(storage);
}

function isSettled(storage: DurableObjectStorage): boolean {
  const { books, finished } = new RunStore(storage, ACCOUNTING_HOOKS).head();
  return books.ends === finished && books.pushes === books.pushed;
}
