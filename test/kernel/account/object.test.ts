/** What organisations may have at once: real objects with small limits. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { RunObject } from "../../../src/index.ts";
import { AccountObject } from "../../../src/kernel/account/object.ts";
import { accountObject } from "../../../src/kernel/kit/names.ts";
import { WAIT } from "../../hang-limits.ts";
import { expectLaw, inside, isOf, openPlatform, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const HANGS = [{ fault: { kind: "hang" } }] as const;

afterEach(() => {
  vi.restoreAllMocks();
});

async function allow(api: TestApi, concurrent_rollouts: number): Promise<void> {
  const limits = JSON.stringify({ concurrent_rollouts });
  await env.DB.prepare("update organizations set limits = ? where id = ?").bind(limits, api.scope.orgId).run();
  await accountObject(env, api.scope.orgId).changed();
}

function inAccount<T>({ scope }: TestApi, use: (object: AccountObject, state: DurableObjectState) => T): Promise<T> {
  const stub: DurableObjectStub = env.ACCOUNT.getByName(`org/${scope.orgId}`);
  return inside(stub, AccountObject, use);
}

function hanging(api: TestApi, max_concurrent = 10) {
  return api.start({ environment: "gsm8k", dataset: questions(20), model: script(HANGS), max_concurrent });
}

const running = async (api: TestApi, id: string) => (await api.run(id)).counts.in_flight;

async function cancelled(api: TestApi, id: string): Promise<void> {
  await api.post(`/v1/runs/${id}/cancel`, {});
  const run = await api.ended(id);
  expectLaw(run.counts);
  expect(run.status).toBe("cancelled");
}

test("runs of one organisation share its rollouts, a run of another has its own, and what one run leaves the next one gets", async () => {
  const [busy, other] = [await openPlatform(), await openPlatform()];
  await allow(busy, 4);
  const first = await hanging(busy);
  const second = await hanging(busy);
  const stranger = await hanging(other);
  expect([await running(busy, first.id), await running(busy, second.id)]).toEqual([4, 0]);
  expect(await running(other, stranger.id)).toBe(10);
  expect((await busy.run(second.id)).status_reason).toEqual({
    state: "over_limit",
    reason: "the organisation's limit is 4 rollouts at once, used by its other runs",
  });
  await cancelled(busy, first.id);
  await vi.waitUntil(async () => (await running(busy, second.id)) === 4, WAIT);
  await cancelled(busy, second.id);
  await cancelled(other, stranger.id);
});

test("the limit holds even if every object is lost, and the runs continue within it", async () => {
  const api = await openPlatform();
  await allow(api, 3);
  const runs = [await hanging(api), await hanging(api)] as const;
  await abortAllDurableObjects();
  const all = async () => (await Promise.all(runs.map(({ id }) => running(api, id)))).reduce((sum, n) => sum + n, 0);
  expect(await all()).toBe(3);
  await cancelled(api, runs[0].id);
  await abortAllDurableObjects();
  await vi.waitUntil(async () => (await running(api, runs[1].id)) === 3, WAIT);
  await cancelled(api, runs[1].id);
});

test("with two messages per queue at once runs still end, and never have more messages there", async () => {
  const api = await openPlatform();
  await inAccount(api, (object) => {
    object.leases.messages = 2;
    object.leases.judgements = 2;
  });
  const runs = await Promise.all(
    [1, 2, 3].map(() => {
      return api.start({ environment: "gsm8k", dataset: questions(10), model: script(RIGHT), max_concurrent: 10 });
    }),
  );
  const granted = await inAccount(api, (_, { storage }) => {
    type Row = { held: { messages: { permits: number; running: number } } };
    const rows = [...storage.kv.list<Row>({ prefix: "share/" })];
    return rows.reduce((sum, [, { held }]) => sum + Math.max(held.messages.permits, held.messages.running), 0);
  });
  expect(granted).toBeLessThanOrEqual(2);
  const ended = await Promise.all(runs.map(({ id }) => api.ended(id)));
  expect(ended.map(({ counts }) => counts.scored)).toEqual([10, 10, 10]);
});

/** Runs request a lease at most once a second. */
const SECOND_MS = 1000;

const empty = (api: TestApi) =>
  inAccount(api, (_, { storage }) => [...storage.kv.list({ prefix: "share" })].length === 0);

type Ask = AccountObject["ask"];

/** Records the runs' requests to the organisation, and when it has forgotten all runs. `lose`: an answer is lost. */
function listen({ scope }: TestApi, lose: (asks: number) => boolean = () => false) {
  const asks: Parameters<Ask>[0][] = [];
  const left = Promise.withResolvers<void>();
  const ask = AccountObject.prototype.ask;
  vi.spyOn(AccountObject.prototype, "ask").mockImplementation(async function (this: AccountObject, asked) {
    if (asked.scope.orgId !== scope.orgId) return await ask.call(this, asked);
    asks.push(asked);
    const count = asks.length;
    const grantedLeases = await ask.call(this, asked);
    if (lose(count)) throw new Error("lost by the test");
    if (this.leases.nextAt() === null) left.resolve();
    return grantedLeases;
  });
  return { asks, left: left.promise };
}

type Folded = Parameters<RunObject["folded"]>;

/** The first segment of the organisation that is compacted; `late`: its run has not been notified. */
function folding({ scope }: TestApi, late = false): Promise<Folded> {
  const folded = Promise.withResolvers<Folded>();
  const hear = RunObject.prototype.folded;
  vi.spyOn(RunObject.prototype, "folded").mockImplementation(function (this: RunObject, ...args) {
    const ours = isOf(scope.orgId, this);
    if (!late || !ours) hear.apply(this, args);
    if (ours) folded.resolve(args);
  });
  return folded.promise;
}

/** Runs its next tick with its clock this many seconds ahead, so that the test does not wait for due times. */
function pass(api: TestApi, id: string, seconds: number): Promise<void> {
  return api.inRun(id, async (run) => {
    run.now = () => Date.now() + seconds * SECOND_MS;
    await run.alarm();
  });
}

test("an organisation's object forgets everything with its last run, and needs few requests for many rollouts", async () => {
  const api = await openPlatform();
  const [{ asks, left }, folded] = [listen(api), folding(api)];
  const request = { environment: "gsm8k", dataset: questions(60), model: script(RIGHT) };
  const { id } = await api.finish({ ...request, max_concurrent: 5 });
  await folded;
  await pass(api, id, 2);
  await left;
  expect(await empty(api)).toBe(true);
  expect(asks.length).toBeLessThan(5);
});

test("a run whose last message is answered long after its end returns its place in the queue at once", async () => {
  const api = await openPlatform();
  const [{ left }, folded] = [listen(api), folding(api, true)];
  const { id } = await api.finish({ environment: "gsm8k", dataset: questions(2), model: script(RIGHT) });
  const args = await folded;
  await pass(api, id, 2);
  expect(await empty(api)).toBe(false);
  vi.mocked(RunObject.prototype.folded).mockRestore();
  await api.inRun(id, (run) => {
    run.now = () => Date.now() + 4 * SECOND_MS;
    run.folded(...args);
  });
  await left;
});

test("a run that ended before its first request was answered returns the grant that it never received", async () => {
  const api = await openPlatform();
  const { left } = listen(api, (asks) => asks === 1);
  const { id } = await hanging(api);
  await cancelled(api, id);
  await pass(api, id, 5);
  await left;
});
