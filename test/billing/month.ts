/** The parts of an organisation's month: who pays, what its runs call, prices, payments, days of storage, its end. */
import { env } from "cloudflare:workers";
import { createHmac } from "node:crypto";
import * as z from "zod";
import { openAuthentication } from "../../src/accounts/authentication.ts";
import { AccountObject } from "../../src/billing/object.ts";
import { forgetPrices } from "../../src/billing/price-lists.ts";
import { dataset, defineEnvironment, JudgeRubric, MultiTurnEnv } from "../../src/core/entry.ts";
import { createApp } from "../../src/kernel/http/app.ts";
import { services } from "../../src/kernel/service/services.ts";
import { SLICE_SERVICES } from "../../src/slice-services.ts";
import { OPERATIONS } from "../../src/slices.ts";
import { admit } from "../accounts/admit.ts";
import { disputeOf, eventOf, type Paid, paymentOf, refundOf, sessionOf } from "../fakes/stripe-objects.ts";
import { inProject } from "../kernel/deleting.ts";
import { judgement } from "../kernel/essays.ts";
import { openPaying } from "../kernel/paying.ts";
import { inside, release, requestsOf, rolloutAt, type TestApi } from "../kernel/platform.ts";
import { registerOnce } from "../kernel/registered.ts";
import { script } from "../kernel/script.ts";
import { uploaded } from "../kernel/upload.ts";
import type { Asked, Tokens } from "./recompute.ts";

const DAY_MS = 24 * 3600_000;
const HOUR_MS = 3600_000;
const MONTH_LETTERS = "2026-11".length;

/** Two turns, which a task can end early; a judge scores it, or a function that can fail. */
const tale = defineEnvironment({
  args: z.strictObject({ judged: z.boolean().default(false) }),
  build: ({ judged }) => {
    const rewards = {
      told: ({ task }: { readonly task: { readonly question: string } }) => {
        if (task.question.includes("odd")) throw new Error("nobody knows what it is worth");
        return 1;
      },
    };
    const prompt = "Topic: {question}\nTale:\n{response}\nHow good is it?";
    return new MultiTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), "uploaded"),
      maxTurns: 2,
      envResponse: (_messages, { task }) => {
        if (task.question.includes("breaks")) throw new Error("the teller is gone");
        return "Go on.";
      },
      rubric: judged ? new JudgeRubric({ name: "quality", prompt, choices: { bad: 0, good: 1 } }) : { rewards },
    });
  },
});

export function registerTale(): void {
  const { args, needs, load } = tale;
  registerOnce({ id: "tale", version: "1.0.0", digest: "sha256:tale", args, needs, load });
}

const said = (content: string, prompt_tokens: number, completion_tokens: number, cached_tokens: number) => {
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
  return { content, extra: { usage: { ...usage, prompt_tokens_details: { cached_tokens } } } };
};
const TURNS = [said("Once", 1237, 77, 411), said("upon", 2049, 131, 1303)];
const GONE = { fault: { kind: "status", status: 404 } } as const;

/** Scripted models; the platform sells all of them except `own`. */
export function modelsOf() {
  return {
    policy: script(TURNS),
    /** Its second call fails. */
    failing: script([...TURNS.slice(0, 1), GONE]),
    held: script(TURNS, undefined, { held: true }),
    own: script(TURNS),
    judge: script([said(judgement("good"), 733, 41, 119)], { senseless: [said("I cannot say.", 733, 5, 0)] }),
  };
}
export type Models = ReturnType<typeof modelsOf>;

export interface Tenant extends TestApi {
  readonly models: Models;
  /** Reads with a key of the whole organisation. */
  readonly read: <T>(path: string) => Promise<T>;
}

export async function openTenant(): Promise<Tenant> {
  const api = await openPaying(0);
  const token = await admit(api.scope, { project_id: null });
  const read = async <T>(path: string): Promise<T> => {
    const reply = await api.ask(path, { headers: { authorization: `Bearer ${token}` } });
    if (reply.status !== 200) throw new Error(`${path}: ${await reply.text()}`);
    return await reply.json<T>();
  };
  return { ...api, models: modelsOf(), read };
}

/** Posts something as the operator; the reply must be 201. */
export type Operator = (path: string, body: object, key?: string) => Promise<unknown>;

export async function openOperator(): Promise<Operator> {
  const api = await openPaying(0, "off");
  const token = await admit(api.scope, { project_id: null, scopes: ["operator"] });
  return async (path, body, key = crypto.randomUUID()) => {
    const headers = { authorization: `Bearer ${token}`, "idempotency-key": key };
    const reply = await api.post(path, body, headers);
    if (reply.status !== 201) throw new Error(`${path}: ${await reply.text()}`);
    return await reply.json();
  };
}

export interface Prices extends Omit<Asked, "policy" | "judge"> {
  readonly version: string;
  readonly policy: Tokens;
  readonly judge: Tokens;
}

/** Sets the prices from now on, for everything that these tenants call. */
export async function setPrices(
  operator: Operator,
  { version, fees, policy, judge }: Prices,
  tenants: readonly Tenant[],
) {
  const models = tenants.flatMap(({ models: { policy: plain, failing, held, judge: asked } }) => [
    ...[plain, failing, held].map((model) => ({ base_url: env.MODEL_URL, model, ...policy })),
    { base_url: env.MODEL_URL, model: asked, ...judge },
  ]);
  await operator("/v1/prices", { version, fees, models });
  // The next list may start in the same second, and two lists cannot have the same start.
  await env.DB.prepare("update price_lists set effective_from = effective_from - 1 where version = ?")
    .bind(version)
    .run();
}

/** Removes price lists: other tests share the database. */
export async function dropPrices(versions: readonly string[]): Promise<void> {
  for (const version of versions) {
    await env.DB.prepare("delete from price_lists where version = ?").bind(version).run();
  }
  forgetPrices();
}

export const aTale = (model: string, words: readonly string[], more: object = {}) => ({
  ...{
    environment: "tale",
    dataset: words.map((word, at) => ({ question: `A ${word} tale ${at}` })),
    model,
    min_scored: 0,
  },
  ...more,
});

export const judgedBy = (judge: string) => ({
  environment_args: { judged: true },
  judges: { default: { endpoint: { base_url: env.MODEL_URL }, model: judge } },
});

/** Starts a run of three rollouts, two at a time, and cancels it after one of them had a turn. Returns its id. */
export async function cancelled(tenant: Tenant): Promise<string> {
  const { held } = tenant.models;
  const { id } = await tenant.start(aTale(held, ["a", "b", "c"], { max_concurrent: 2 }));
  await requestsOf(held, 2);
  await release(`${rolloutAt(id, 0)}:0`);
  await requestsOf(held, 3);
  await tenant.post(`/v1/runs/${id}/cancel`, {});
  await tenant.ended(id);
  return id;
}

const SECRET = "whsec_bW9udGg";

/** Payments through Stripe: one reported three times, a partial refund, a dispute that is won. Returns the rest. */
export async function payByCard({ scope }: Tenant, cents: number, refunded: number): Promise<number> {
  const metadata = { rollcall_organization: scope.orgId, rollcall_payer: "key_1" };
  const payment: Paid = { mark: crypto.randomUUID().replaceAll("-", ""), cents, metadata };
  const NETWORK = { fetch: async () => Response.json(paymentOf(payment)) };
  const configured = { ...env, STRIPE_SECRET_KEY: "sk_test_1", STRIPE_WEBHOOK_SECRET: SECRET, NETWORK };
  const app = createApp(
    {
      services,
      slices: SLICE_SERVICES,
      authentication: openAuthentication,
      now: () => Date.now(),
      outlive: (work) => work,
      report: () => undefined,
    },
    OPERATIONS,
  );
  const paid = eventOf("payment_intent.succeeded", paymentOf(payment));
  const opened = eventOf("charge.dispute.created", disputeOf(payment, "needs_response"));
  const won = eventOf("charge.dispute.closed", disputeOf(payment, "won"));
  const part = eventOf("refund.created", refundOf(payment, 1, refunded, "succeeded"));
  const done = eventOf("checkout.session.completed", sessionOf(payment));
  for (const body of [paid, done, paid, part, opened, won, part, opened, won]) {
    const at = Math.floor(Date.now() / 1000);
    const mac = createHmac("sha256", SECRET).update(`${at}.${body}`).digest("hex");
    const headers = { "content-type": "application/json", "stripe-signature": `t=${at},v1=${mac}` };
    const reply = await app.request(
      "http://platform.test/v1/stripe/webhook",
      { method: "POST", headers, body },
      configured,
    );
    if (reply.status !== 200) throw new Error(await reply.text());
  }
  return (cents - refunded) * 10_000;
}

/** Stores this many bytes and reconciles the project for the next days. Returns the bytes of each day. */
export async function storeFor(tenant: Tenant, bytes: number, days: number): Promise<number[]> {
  const { id } = await uploaded(tenant, '{"question":"kept"}\n', `name=${crypto.randomUUID()}`);
  await env.DB.prepare("update datasets set bytes = ? where id = ?").bind(bytes, id).run();
  const stored: number[] = [];
  for (let day = 1; day <= days; day += 1) {
    stored.push(await storedBy(tenant));
    await inProject(tenant, async (project, { storage }) => {
      if (day === 1) await project.note(tenant.scope);
      const now = Date.now() + day * DAY_MS;
      project.now = () => now;
      for (let alarms = 0; alarms < 20; alarms += 1) {
        await project.alarm();
        const at = await storage.getAlarm();
        if (at === null || at > now) return;
      }
      throw new Error("the expiry does not end");
    });
  }
  return stored;
}

async function storedBy({ scope }: Tenant): Promise<number> {
  const sum = (table: string, column: string) =>
    env.DB.prepare(`select coalesce(sum(${column}), 0) as n from ${table} where project_id = ?`)
      .bind(scope.projectId)
      .first<number>("n");
  return Number(await sum("datasets", "bytes")) + Number(await sum("runs", "stored_bytes"));
}

/** The month in which everything is posted, also if another month starts meanwhile. */
export interface Month {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly from: number;
  readonly to: number;
}

export function presentMonth(): Month {
  const now = new Date();
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  const name = now.toISOString().slice(0, MONTH_LETTERS);
  return { name, from: Date.UTC(year, month, 1), to: Date.UTC(year, month + 1, 1) };
}

const inLedger = <T>({ scope }: Tenant, use: (ledger: AccountObject, state: DurableObjectState) => Promise<T> | T) =>
  inside(env.ACCOUNT.getByName(`org/${scope.orgId}`), AccountObject, use);

export async function keepWithin(tenant: Tenant, { to }: Month): Promise<void> {
  await inLedger(tenant, (ledger) => {
    ledger.now = () => Math.min(Date.now(), to - 1);
  });
}

/** Ends the month: fires alarms until it is closed and all its entries are archived. */
export async function endMonth(tenant: Tenant, { name, to }: Month): Promise<void> {
  await inLedger(tenant, async (ledger, { storage }) => {
    ledger.ledger.archiveBounds = { kept: 0, entriesAFile: 1 };
    for (let alarms = 1; alarms <= 20; alarms += 1) {
      ledger.now = () => to + alarms * HOUR_MS;
      await ledger.alarm();
      const [left] = storage.sql.exec("select count(*) as n from entries where at < ?", to).toArray();
      const closed = ledger.month(tenant.scope.orgId, name)?.closed_at ?? null;
      if (closed !== null && left?.["n"] === 0) return;
    }
    throw new Error("the month is not closed");
  });
}
