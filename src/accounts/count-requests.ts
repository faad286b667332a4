/** Counts requests against the limits of keys and organisations, in blocks that this isolate was granted. */

import type { Caller } from "../contract/identity.ts";
import { Refusal } from "../kernel/http/errors.ts";
import type { ApiContext } from "../kernel/http/operation.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import { logError } from "../kernel/kit/log.ts";
import { RequestLeases, type Taken } from "./request-leases.ts";
import { requestsObject } from "./rpc.ts";

/** Back-off after a counter failed to respond. */
const UNCOUNTED_MS = 1000;
const COUNTERS = 2000;

export class RequestCounts {
  readonly #now: () => number;
  readonly #requests = new RequestLeases();
  /** Counters that did not answer, and until when they are not called. */
  readonly #uncounted = new LruCache<number>(COUNTERS);

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts the request against the key's own limit and its organisation's limit. */
  async count(context: ApiContext, caller: Caller): Promise<void> {
    const { own, organization } = caller.perMinute;
    // A request that the key's own limit refuses uses nothing of the organisation's limit.
    const taken = await this.#take(context.env, caller.orgId, caller.who, own);
    const shared = taken?.refusedMs ? null : await this.#take(context.env, caller.orgId, null, organization);
    const tightest = [taken, shared].flatMap((one) => one ?? []).toSorted((a, b) => rank(a) - rank(b))[0];
    if (tightest === undefined) return;
    context.set("limitHeaders", {
      "x-ratelimit-limit-requests": String(tightest.limit),
      "x-ratelimit-remaining-requests": String(tightest.remaining),
      "x-ratelimit-reset-requests": `${Math.ceil(tightest.resetMs / 1000)}s`,
    });
    if (tightest.refusedMs === null) return;
    const message = `the limit is ${tightest.limit} requests a minute`;
    const headers = { "retry-after": String(Math.ceil(tightest.refusedMs / 1000)) };
    throw new Refusal({ code: "rate_limited", message, param: null }, { headers });
  }

  /** Null: no limit, or the counter does not answer: one request too many is better than an outage. */
  async #take(env: Env, orgId: string, keyId: string | null, limit: number | null): Promise<Taken | null> {
    const name = `${orgId}/${keyId ?? ""}`;
    if (limit === null || (this.#uncounted.get(name) ?? 0) > this.#now()) return null;
    const counter = requestsObject(env, orgId, keyId);
    try {
      return await this.#requests.take(name, limit, { now: this.#now, pause }, (asked) => counter.take(asked));
    } catch (thrown) {
      this.#uncounted.set(name, this.#now() + UNCOUNTED_MS);
      logError("requests are not counted", { org_id: orgId, ...(keyId !== null && { key_id: keyId }) }, thrown);
      return null;
    }
  }
}

function rank({ refusedMs, remaining }: Taken): number {
  return refusedMs === null ? remaining : -refusedMs;
}

async function pause(ms: number): Promise<void> {
  await scheduler.wait(ms);
}
