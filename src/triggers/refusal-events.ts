/**
 * Sends `trigger.refused` to webhooks, at most once a minute per reason. A kill may lose one, but not its log entry.
 */

import { idsOf, logError } from "../kernel/kit/log.ts";
import { emitEvents } from "../kernel/kit/slice-hooks.ts";
import type { Refusal } from "../kernel/messages/refusal.ts";
import type { TriggerPlace } from "./rpc.ts";

const MINUTE_MS = 60_000;

export class RefusalEvents {
  readonly #env: Env;
  /** By reason, the minute of the last event. */
  readonly #reported = new Map<string, number>();

  constructor(env: Env) {
    this.#env = env;
  }

  /** Never throws. `delivery_id`: null for an unsigned delivery. */
  async notify({ scope, trigger_id }: TriggerPlace, error: Refusal, delivery_id: string | null, now: number) {
    const { code, message } = error;
    const minute = Math.floor(now / MINUTE_MS);
    if (this.#reported.get(code) === minute) return;
    this.#reported.set(code, minute);
    const id = `evt_${trigger_id.slice(trigger_id.indexOf("_") + 1)}_${code}_${minute}`;
    const data = { trigger_id, code, message, delivery_id };
    const event = { id, type: "trigger.refused", at: now, subject: trigger_id, data };
    try {
      await emitEvents(this.#env, scope, [{ ...event, path: `/v1/triggers/${trigger_id}/deliveries` }]);
    } catch (thrown) {
      logError("no event was sent for a refused delivery", { ...idsOf({ scope }), trigger_id }, thrown);
    }
  }
}
