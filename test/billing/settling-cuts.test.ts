/** A run's settlement with its organisation's ledger, interrupted at each of its writes, with the real stores. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunSettling } from "../../src/billing/settling.ts";
import type { ChargeAudit } from "../../src/contract/audit.ts";
import { ACCOUNTING_HOOKS } from "../../src/kernel/run/object.ts";
import { RunStore } from "../../src/kernel/run/store.ts";
import { Life } from "../kernel/life.ts";
import { balanceOf, entriesOf, openPaying, settle } from "../kernel/paying.ts";
import type { TestApi } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

const PAID_IN = 1_000_000;
const ENDS = 3;
const MOST_WRITES = 20;

/** Resets the run to the state before any settlement. */
function forget(storage: DurableObjectStorage): void {
  const head = storage.kv.get<{ books: object }>("head");
  if (head === undefined) throw new Error("no run");
  storage.kv.put("head", { ...head, books: { ...head.books, ends: 0, settled: 0 } });
}

/** Settles with an instance that dies after this many writes. Returns false if it needed fewer. */
async function dies(api: TestApi, id: string, writes: number): Promise<boolean> {
  const life = new Life(writes);
  await api.inRun(id, async (_, state) => {
    forget(state.storage);
    const store = new RunStore(life.storage(state.storage), ACCOUNTING_HOOKS);
    let now = Date.now();
    const settling = new RunSettling(env, store, () => now);
    const spec = store.spec();
    if (spec === null) throw new Error("no run");
    for (let calls = 0; calls < 5 && !life.over; calls += 1) {
      now += 120_000;
      await settling.advance(spec);
    }
  });
  // The memory of the object is out of date.
  if (life.over) await expect(api.inRun(id, (_, state) => state.abort("killed"))).rejects.toThrow("killed");
  return life.over;
}

test("a run that is killed between any two writes of its settlement is charged once and reserves nothing", async () => {
  const api = await openPaying(PAID_IN);
  const { id } = await api.finish({
    environment: "gsm8k",
    dataset: questions(ENDS),
    model: script(RIGHT),
    min_scored: 0,
  });
  expect(await settle(api, id)).toBe(true);
  const before = await entriesOf(api, id);
  expect(before).toHaveLength(ENDS);
  const charged = before.reduce((sum, { amount_micros }) => sum + amount_micros, 0);
  let killed = 0;
  while (killed < MOST_WRITES && (await dies(api, id, killed))) {
    killed += 1;
    expect(await settle(api, id)).toBe(true);
    expect(await entriesOf(api, id)).toEqual(before);
    expect(await balanceOf(api)).toMatchObject({ balance_micros: PAID_IN + charged, reserved_micros: 0 });
    const audit: ChargeAudit = await (await api.ask(`/v1/runs/${id}/charges`)).json();
    expect(audit).toMatchObject({ checked: ENDS, unsettled: 0, differences: [] });
  }
  expect(killed).toBeGreaterThan(0);
  expect(killed).toBeLessThan(MOST_WRITES);
});
