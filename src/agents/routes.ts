/** Routes with which workers lease rollouts and end them. */
import * as z from "zod";
import { IDEMPOTENCY_HEADER, readBody, readCreation } from "../kernel/http/answer.ts";
import { bearerOf, unauthorized } from "../kernel/http/bearer.ts";
import { unwrap } from "../kernel/http/errors.ts";
import { idempotencyKeyOf, parseAs } from "../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../kernel/http/operation.ts";
import { RUN_COST_MS } from "../kernel/http/pace.ts";
import { CREATE_ERRORS, UNPAID } from "../kernel/http/runs.ts";
import { refuseStranger } from "../kernel/http/strangers.ts";
import type { RolloutAccess } from "../kernel/kit/secrets.ts";
import {
  AgentHeartbeat,
  AgentLeaseRequest,
  AgentName,
  CreatedRollout,
  FinishedRollout,
  LeasedRollouts,
  LeaseStates,
  RolloutFinish,
  RolloutRequest,
} from "./wire.ts";

const ONE = "/v1/agents/{name}";
const AGAIN = { "Idempotency-Key": "accepted but not needed: the request is idempotent" };
const NO_HARM = {
  "Idempotency-Key": "accepted but not needed: a repeat leases other rollouts, and unused leases expire",
};

const service = serviceOf<typeof import("./service.ts")>("agents");

export const leaseOperations: readonly Operation[] = [
  {
    id: "leaseRollouts",
    unlogged: true,
    route: `POST ${ONE}/lease`,
    permission: "runs:write",
    summary: "Lease rollouts for a worker of an agent; the request waits until there is one",
    description:
      "Each rollout has an address of its own, which speaks chat completions, Responses and Anthropic messages. Send heartbeats, and end each rollout.",
    headers: NO_HARM,
    body: { schema: AgentLeaseRequest },
    reply: { description: "The rollouts; an empty list if there is none", schema: LeasedRollouts },
    handle: async (context) => {
      const request = await readBody(context, AgentLeaseRequest);
      const { origin } = new URL(context.req.url);
      const { env, var: variables } = context;
      const rollouts = await service(context).leaseRollouts(env, variables.scope, nameOf(context), request, origin);
      return context.json({ rollouts });
    },
  },
  {
    id: "createRollout",
    route: "POST /v1/rollouts",
    costMs: RUN_COST_MS,
    permission: "runs:write",
    summary: "Begin one rollout that the caller plays",
    description:
      "A run of one rollout, leased to the caller without heartbeats until its time limit. Call its address, then end it. A repeat with the same `Idempotency-Key` gets the same rollout with another key.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: RolloutRequest },
    reply: { status: 201, description: "The rollout", schema: CreatedRollout },
    errors: [...CREATE_ERRORS, "idempotency_conflict", ...UNPAID],
    handle: async (context) => {
      const { request, options } = await readCreation(context, RolloutRequest);
      const { origin } = new URL(context.req.url);
      const { env, var: variables } = context;
      const created = await service(context).createRollout(env, variables.scope, request, { ...options, origin });
      return context.json(unwrap(created), 201);
    },
  },
  {
    id: "heartbeatAgent",
    unlogged: true,
    route: `POST ${ONE}/heartbeat`,
    permission: "runs:write",
    summary: "Extend the leases of a worker (heartbeat)",
    headers: AGAIN,
    body: { schema: AgentHeartbeat },
    reply: { description: "The state of each lease", schema: LeaseStates },
    handle: async (context) => {
      const request = await readBody(context, AgentHeartbeat);
      nameOf(context);
      return context.json({ data: await service(context).keepLeases(context.env, context.var.scope, request) });
    },
  },
  {
    id: "releaseAgent",
    unlogged: true,
    route: `POST ${ONE}/release`,
    permission: "runs:write",
    summary: "Give leases back: other workers may take the rollouts at once",
    description: "For a worker that stops. Its requests for rollouts that still wait return an empty list.",
    headers: AGAIN,
    body: { schema: AgentHeartbeat },
    reply: {
      description: "The state of each lease",
      schema: LeaseStates,
      example: { data: [{ state: "lost", expires_at: null }] },
    },
    handle: async (context) => {
      const request = await readBody(context, AgentHeartbeat);
      nameOf(context);
      return context.json({ data: await service(context).releaseLeases(context.env, context.var.scope, request) });
    },
  },
  {
    id: "finishRollout",
    route: "POST /v1/rollouts/{id}/finish",
    permission: "anybody",
    proof: "rollout_key",
    summary: "End a rollout that an agent plays, with its rewards or its error",
    description: "It needs the rollout's own key. A repeat with the same body gets the same answer.",
    headers: AGAIN,
    body: { schema: RolloutFinish, example: { rewards: { solved: 1 } } },
    reply: { description: "The rollout has ended, and is scored soon", schema: FinishedRollout },
    errors: ["unauthorized", "rate_limited", "not_found", "conflict", "lease_lost"],
    handle: async (context) => {
      idempotencyKeyOf(context.req.raw);
      const access = await accessOf(context);
      const request = await readBody(context, RolloutFinish);
      return context.json(unwrap(await service(context).finishRollout(context.env, access, request)));
    },
  },
];

/** The rollout that the request's key opens. Throws a Refusal if that is not the rollout of the path. */
export async function accessOf(context: ApiContext, key: string = bearerOf(context, "key")): Promise<RolloutAccess> {
  const access = service(context).accessOf(context.env, key, pathParam(context, "id"));
  return access ?? (await refuseStranger(context, unauthorized("this key does not open the rollout")));
}

function nameOf(context: ApiContext): string {
  return parseAs(z.object({ name: AgentName }), { name: pathParam(context, "name") }).name;
}
