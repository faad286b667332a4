/** What organisations may have at once: the real objects, with small limits. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { AccountObject } from "../../../src/runtime/account/object.ts";
import { accountObject } from "../../../src/runtime/kit/names.ts";
import { type Door, expectLaw, inside, openPlatform } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const HANGS = [{ fault: { kind: "hang" } }] as const;

/** Runs and their organisation speak at most once a second, by real clocks. */
vi.setConfig({ testTimeout: 20_000 });

async function allow(door: Door, concurrent_rollouts: number): Promise<void> {
  const limits = JSON.stringify({ concurrent_rollouts });
  await env.DB.prepare("update organizations set limits = ? where id = ?").bind(limits, door.scope.orgId).run();
  await accountObject(env, door.scope.orgId).changed();
}

function inAccount<T>({ scope }: Door, use: (object: AccountObject, state: DurableObjectState) => T): Promise<T> {
  const stub: DurableObjectStub = env.ACCOUNT.getByName(`org/${scope.orgId}`);
  return inside(stub, AccountObject, use);
}

function hanging(door: Door, max_concurrent = 10) {
  return door.start({ environment: "gsm8k", dataset: questions(20), model: script(HANGS), max_concurrent });
}

const running = async (door: Door, id: string) => (await door.run(id)).counts.in_flight;

async function cancelled(door: Door, id: string): Promise<void> {
  await door.post(`/v1/runs/${id}/cancel`, {});
  const run = await door.ended(id);
  expectLaw(run.counts);
  expect(run.status).toBe("cancelled");
}

test("runs of one organisation share its rollouts, another organisation's run has its own, and what one leaves the next gets", async () => {
  const [busy, other] = [await openPlatform(), await openPlatform()];
  await allow(busy, 4);
  const first = await hanging(busy);
  const second = await hanging(busy);
  const stranger = await hanging(other);
  expect([await running(busy, first.id), await running(busy, second.id)]).toEqual([4, 0]);
  expect(await running(other, stranger.id)).toBe(10);
  expect((await busy.run(second.id)).flow).toEqual({
    state: "over_limit",
    reason: "the organisation may have 4 rollouts at once, and other runs of it have them",
  });
  await cancelled(busy, first.id);
  await vi.waitUntil(async () => (await running(busy, second.id)) === 4, { timeout: 10_000 });
  await cancelled(busy, second.id);
  await cancelled(other, stranger.id);
});

test("the limit holds though every object is lost, and the runs go on within it", async () => {
  const door = await openPlatform();
  await allow(door, 3);
  const runs = [await hanging(door), await hanging(door)] as const;
  await abortAllDurableObjects();
  const all = async () => (await Promise.all(runs.map(({ id }) => running(door, id)))).reduce((sum, n) => sum + n, 0);
  expect(await all()).toBe(3);
  await cancelled(door, runs[0].id);
  await abortAllDurableObjects();
  await vi.waitUntil(async () => (await running(door, runs[1].id)) === 3, { timeout: 10_000 });
  await cancelled(door, runs[1].id);
});

test("with two messages in each queue at once runs end all the same, and never have more of them there", async () => {
  const door = await openPlatform();
  await inAccount(door, (object) => {
    object.shares.messages = 2;
    object.shares.judgements = 2;
  });
  const runs = await Promise.all(
    [1, 2, 3].map(() => {
      return door.start({ environment: "gsm8k", dataset: questions(10), model: script(RIGHT), max_concurrent: 10 });
    }),
  );
  const granted = await inAccount(door, (_, { storage }) => {
    type Row = { held: { messages: { permits: number; running: number } } };
    const rows = [...storage.kv.list<Row>({ prefix: "share/" })];
    return rows.reduce((sum, [, { held }]) => sum + Math.max(held.messages.permits, held.messages.running), 0);
  });
  expect(granted).toBeLessThanOrEqual(2);
  const ended = await Promise.all(runs.map(({ id }) => door.ended(id)));
  expect(ended.map(({ counts }) => counts.scored)).toEqual([10, 10, 10]);
});

const HOUR_MS = 3_600_000;

test("an organisation's object forgets everything with its last run, and was asked a few times for many rollouts", async () => {
  const door = await openPlatform();
  const asks = vi.spyOn(AccountObject.prototype, "ask");
  const request = { environment: "gsm8k", dataset: questions(60), model: script(RIGHT) };
  const { id } = await door.finish({ ...request, max_concurrent: 5 });
  const empty = () => inAccount(door, (_, { storage }) => [...storage.kv.list({ prefix: "share" })].length === 0);
  // A run that has ended gives its shares back, or they end with their lease.
  await inAccount(door, async (object) => {
    object.now = () => Date.now() + HOUR_MS;
    await object.alarm();
  });
  expect(await empty()).toBe(true);
  expect(asks.mock.calls.filter(([{ run_id }]) => run_id === id).length).toBeLessThan(5);
});
