/** A trigger in its own project, deliveries to it, and replacements for accepting runs. */
import { env } from "cloudflare:workers";
import type { Json } from "../../src/contract/json.ts";
import type { RunView } from "../../src/contract/run.ts";
import { TriggerObject } from "../../src/index.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { insertRun } from "../../src/kernel/db/runs.ts";
import { folderOf } from "../../src/kernel/kit/names.ts";
import type { AcceptRun } from "../../src/triggers/begin-run.ts";
import type { DeliveryOutcome, SignedDelivery, TriggerPlace, TriggerRpc } from "../../src/triggers/rpc.ts";
import { triggerObject } from "../../src/triggers/rpc.ts";
import type { CreatedTrigger, TriggerConcurrency } from "../../src/triggers/wire.ts";
import { endpointRow, runRow } from "../kernel/http/run-rows.ts";
import { type Inside, inside, openPlatform, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";

const WRONG = { tool_calls: [{ name: "guess", arguments: { number: 900 } }] };
const GAME = {
  ...{ environment: "guess-number", environment_args: { max: 1000, max_turns: 1 }, num_examples: 1 },
  endpoint: { base_url: env.MODEL_URL },
};
export const ENDS = { ...GAME, model: script([WRONG]) };

export interface Opened {
  readonly api: TestApi;
  readonly of: TriggerPlace;
  readonly object: TriggerRpc;
  readonly deliver: (id: string, filling?: Readonly<Record<string, Json>>) => Promise<DeliveryOutcome>;
  readonly within: <T>(use: Inside<TriggerObject, T>) => Promise<T>;
  readonly runs: () => Promise<RunView[]>;
}

export async function opened(run: object, concurrency: TriggerConcurrency = "allow", at?: TestApi): Promise<Opened> {
  const api = at ?? (await openPlatform());
  const asked = { name: "t", verify: { scheme: "standard" }, run, map: { "metadata.n": "$.n" }, concurrency };
  const made = await api.post("/v1/triggers", asked);
  if (made.status !== 201) throw new Error(await made.text());
  const { id: trigger_id } = await made.json<CreatedTrigger>();
  const of = { scope: api.scope, trigger_id };
  const object = triggerObject(env, of);
  const deliver: Opened["deliver"] = (id, filling = { "metadata.n": id }) => {
    return triggerObject(env, of).deliver(of, deliveryOf(id, concurrency, { kind: "begin", filling }));
  };
  // A stub of an aborted object stays broken: each call gets its own.
  const stub = () => env.TRIGGER.getByName(`${folderOf(of.scope)}${trigger_id}`);
  const within: Opened["within"] = (use) => inside(stub(), TriggerObject, use);
  const runs = async () => (await (await api.ask("/v1/runs?order=asc")).json<{ data: RunView[] }>()).data;
  return { api, of, object, deliver, within, runs };
}

export function deliveryOf(
  id: string,
  concurrency: TriggerConcurrency,
  verdict: SignedDelivery["verdict"],
): SignedDelivery {
  return { ids: [id], event: "made.up", verdict, concurrency, origin: "http://platform.test" };
}

/** Replaces how the object accepts runs. */
export function accepting(object: TriggerObject, accept: AcceptRun): void {
  Object.defineProperty(object, "acceptRun", { value: accept, configurable: true });
}

/** Runs that are only rows: they are unfinished until a test ends them. */
export const acceptRow: AcceptRun = async (_env, scope, { metadata }, { idempotencyKey: idempotency_key, now }) => {
  const run = runRow(endpointRow(), { metadata, status: "running", idempotency_key, created_at: now });
  await insertRun(databaseOf(env), scope, run, null);
  return { ok: true, value: { run } };
};

export async function end(id: string | null): Promise<void> {
  await env.DB.prepare("update runs set status = 'completed' where id = ?").bind(id).run();
}

export async function openedOnRows(concurrency: TriggerConcurrency): Promise<Opened> {
  const on = await opened(ENDS, concurrency);
  await on.within((object) => accepting(object, acceptRow));
  return on;
}
