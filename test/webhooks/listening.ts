/** A webhook endpoint with the test's clock and network: alarms are fired by hand, at the times they are set for. */
import { env } from "cloudflare:workers";
import type { Scope } from "../../src/contract/scope.ts";
import { WebhookObject } from "../../src/index.ts";
import type { OutboundEvent } from "../../src/kernel/kit/slice-hooks.ts";
import { CreatedWebhook } from "../../src/webhooks/wire.ts";
import { type Inside, inside, type TestApi } from "../kernel/platform.ts";

export interface Got {
  readonly url: string;
  readonly at: number;
  readonly headers: Headers;
  readonly body: string;
}

export type Reply = (got: Got) => Response | Promise<Response>;

export class Listening {
  readonly endpoint: CreatedWebhook;
  readonly got: Got[] = [];
  reply: Reply = () => new Response(null, { status: 204 });
  /** Ahead of the real clock, so that no alarm fires by itself. */
  now: number;
  readonly #scope: Scope;

  constructor(scope: Scope, endpoint: CreatedWebhook) {
    this.#scope = scope;
    this.endpoint = endpoint;
    this.now = Math.ceil(Date.now() / 1000) * 1000 + 30 * 24 * 3_600_000;
  }

  get of() {
    return { scope: this.#scope, webhook_id: this.endpoint.id };
  }

  /** Runs code in the object, with this clock and this network. */
  in<T>(use: Inside<WebhookObject, T>): Promise<T> {
    const { orgId, projectId } = this.#scope;
    const stub = env.WEBHOOK.getByName(`org/${orgId}/${projectId}/${this.endpoint.id}`);
    return inside(stub, WebhookObject, (object, state) => {
      object.now = () => this.now;
      object.network = async ({ href: url }, init) => {
        const got = { url, at: this.now, headers: new Headers(init.headers), body: String(init.body) };
        const reply = await this.reply(got);
        this.got.push(got);
        return reply;
      };
      return use(object, state);
    });
  }

  enqueue(events: readonly OutboundEvent[]): Promise<void> {
    return this.in((object) => object.enqueue(this.of, events));
  }

  /** Null: there is no alarm. */
  nextAlarm(): Promise<number | null> {
    return this.in((_, state) => state.storage.getAlarm());
  }

  /** Fires alarms at their times, until there is none before `until`. Returns how many. */
  async run(until: number = this.now): Promise<number> {
    for (let fired = 0; ; fired += 1) {
      const at = await this.nextAlarm();
      if (at === null || at > until) {
        this.now = Math.max(this.now, until);
        return fired;
      }
      this.now = Math.max(this.now, at);
      await this.in(async (object, state) => {
        await state.storage.deleteAlarm();
        await object.alarm();
      });
    }
  }
}

export async function listen(api: TestApi, request: object = {}, headers = {}): Promise<Listening> {
  const response = await api.post("/v1/webhook-endpoints", { url: "https://hooks.example/in", ...request }, headers);
  if (response.status !== 201) throw new Error(await response.text());
  return new Listening(api.scope, CreatedWebhook.parse(await response.json()));
}

export function eventOf(run: string, n: number, changes: Partial<OutboundEvent> = {}): OutboundEvent {
  const data = { run_id: `run_${run}`, n };
  return { id: `evt_${run}_${n}`, type: "run.paused", at: 1_764_000_000_000, subject: `run_${run}`, data, ...changes };
}
