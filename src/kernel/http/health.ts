/** Whether the platform is up (`/healthz`, as cheap as a request can be), and whether it can play runs (`/readyz`). */
import * as z from "zod";
import { Seconds } from "../../contract/primitives.ts";
import { TtlCache } from "../kit/caches.ts";
import { storageIsFull, storageTakes } from "../kit/storage-faults.ts";
import type { Readiness } from "../service/check-readiness.ts";
import type { ApiContext, Operation } from "./operation.ts";

/** Anyone may call these routes, so an isolate makes at most one check in this time, however many requests there are. */
const CHECKED_AGAIN_MS = 5000;
const KEPT_MS = 10_000;

export function readinessCache(): TtlCache<Readiness> {
  return new TtlCache(KEPT_MS, CHECKED_AGAIN_MS);
}

const ReadinessView = z.object({
  status: z.enum(["ready", "not_ready"]),
  draining_since: Seconds.nullable().describe("the operator lets no rollouts start since then; null if they start"),
  checks: z.array(
    z.object({
      name: z.enum(["secret", "variables", "database", "queues", "bucket"]),
      ok: z.boolean(),
      problem: z.string().nullable().describe("what is wrong; null if it is ok"),
    }),
  ),
});

export const healthOperations: readonly Operation[] = [
  {
    id: "getHealth",
    route: "GET /healthz",
    permission: "anybody",
    summary: "Check that the platform is up",
    reply: {
      description: "It is up",
      schema: z.object({ status: z.enum(["ok", "storage_full"]) }),
      unavailable: "`storage_full`: the disk of a local platform is full",
    },
    handle: health,
  },
  {
    id: "getReadiness",
    route: "GET /readyz",
    permission: "anybody",
    summary: "Check that the platform can play runs",
    description:
      "`secret`: ROLLCALL_SECRET and ROLLCALL_SECRETS_BEFORE are valid. `variables`: SILENCE_LIMIT_S, MEMORY_BUDGET_MIB and ROLLOUT_CHARACTERS are numbers. `database`: D1 answers, and its newest migration is that of this release. `queues`: all of them are bound. `bucket`: R2 answers. The result is up to 10 s old.",
    reply: {
      description: "It can play runs",
      schema: ReadinessView,
      example: { status: "ready", draining_since: null, checks: [{ name: "secret", ok: true, problem: null }] },
      unavailable: "`not_ready`: a check failed",
    },
    handle: readiness,
  },
];

/** If a write failed because of a full disk, a test write finds out whether the disk is still full. */
async function health({ env }: ApiContext): Promise<Response> {
  if (!storageIsFull() || (await storageTakes(env))) return Response.json({ status: "ok" });
  return Response.json({ status: "storage_full" }, { status: 503 });
}

async function readiness({ env, var: { readiness, services, now } }: ApiContext): Promise<Response> {
  const found = await readiness.get("all", now(), () => services.checkReadiness(env));
  const checks = found.checks.map(({ name, problem }) => ({ name, ok: problem === null, problem }));
  const ready = checks.every(({ ok }) => ok);
  const draining_since = found.drainingSince === null ? null : Math.floor(found.drainingSince / 1000);
  const status = ready ? "ready" : "not_ready";
  return Response.json({ status, draining_since, checks }, { status: ready ? 200 : 503 });
}
