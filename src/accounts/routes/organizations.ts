/** Routes for the caller, the caller's organisation, and, for an operator, every organisation of the deployment. */

import type { Caller } from "../../contract/identity.ts";
import { databaseOf } from "../../kernel/db/database.ts";
import { seconds } from "../../kernel/db/page.ts";
import type { OrganizationRow } from "../../kernel/db/schema.ts";
import { CREATED_HEADERS, creationReply, readBody, readCreation } from "../../kernel/http/answer.ts";
import { logDone } from "../../kernel/http/audit.ts";
import { Refusal, unwrap } from "../../kernel/http/errors.ts";
import { idempotencyKeyOf } from "../../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../../kernel/http/operation.ts";
import { PageQuery, pageReply } from "../../kernel/http/page.ts";
import { refuseStranger } from "../../kernel/http/strangers.ts";
import { refuseFounder } from "../organizations.ts";
import {
  findAnyOrganization,
  findOrganization,
  listedOrganizationOf,
  listOrganizations,
  organizationViewOf,
} from "../queries/organizations.ts";
import { findProject } from "../queries/projects.ts";
import type { AccountsService } from "../service.ts";
import {
  BootstrapRequest,
  CreatedOrganization,
  LimitsRequest,
  ListedOrganization,
  OrganizationList,
  OrganizationPatch,
  OrganizationRequest,
  OrganizationView,
  WhoAmI,
} from "../wire.ts";

const service = serviceOf<AccountsService>("accounts");

const FOLDER = "/v1/organizations";

export const organizationOperations: readonly Operation[] = [
  {
    id: "whoAmI",
    route: "GET /v1/whoami",
    permission: "caller",
    reach: "organization",
    summary: "Read who the caller is, and its scopes",
    reply: { description: "The caller", schema: WhoAmI },
    errors: ["forbidden", "not_found"],
    handle: whoAmI,
  },
  {
    id: "createFirstOrganization",
    route: "POST /v1/bootstrap",
    permission: "anybody",
    reach: "organization",
    summary: "Create the first organisation of a deployment, and its first key",
    description:
      "`Authorization: Bearer` carries the deployment's ROLLCALL_BOOTSTRAP_TOKEN; if that is not set, the path does not exist. It works once: another request is 409, unless it repeats the first one. The key has all permissions in the organisation, and can create organisations.",
    headers: { "Idempotency-Key": "a repeat with the same value returns the same organisation and the same key" },
    body: { schema: BootstrapRequest },
    reply: {
      status: 201,
      description: "The organisation, its project `default`, and its key, which is shown only once",
      schema: CreatedOrganization,
      headers: CREATED_HEADERS,
    },
    errors: ["unknown_field", "not_found", "unauthorized", "conflict", "rate_limited", "storage_full"],
    handle: makeFirst,
  },
  {
    id: "getOrganization",
    route: "GET /v1/organization",
    permission: "runs:read",
    reach: "organization",
    summary: "Read your organisation",
    reply: { description: "The organisation", schema: OrganizationView },
    errors: ["not_found"],
    handle: async (context) => context.json(organizationViewOf(await organizationOf(context.env, context.var.caller))),
  },
  {
    id: "updateOrganization",
    route: "PATCH /v1/organization",
    permission: "admin",
    reach: "organization",
    summary: "Change the name or allowed hosts of your organisation: only the given fields",
    body: { schema: OrganizationPatch, example: { allowed_hosts: ["gpu.example", "*.models.example"] } },
    reply: {
      description: "The changed organisation",
      schema: OrganizationView,
      example: { allowed_hosts: ["gpu.example", "*.models.example"] },
    },
    errors: ["not_found"],
    handle: changeOwn,
  },
  {
    id: "createOrganization",
    route: `POST ${FOLDER}`,
    permission: "operator",
    reach: "organization",
    summary: "Create an organisation, its first project, and a key with all permissions in it",
    description: "The key is shown only once. If the reply was lost, create another organisation.",
    headers: {
      "Idempotency-Key":
        "a repeat with the same key and body creates nothing, and its reply lacks the API key, which is shown only once",
    },
    body: { schema: OrganizationRequest },
    reply: {
      status: 201,
      description: "The organisation, its project and its key",
      schema: CreatedOrganization,
      headers: CREATED_HEADERS,
    },
    errors: ["conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listOrganizations",
    route: `GET ${FOLDER}`,
    permission: "operator",
    reach: "organization",
    summary: "List every organisation of the deployment",
    query: PageQuery,
    reply: { description: "One page of organisations, without their content", schema: OrganizationList },
    handle: listAll,
  },
  {
    id: "updateLimits",
    route: `PATCH ${FOLDER}/{id}`,
    permission: "operator",
    reach: "organization",
    summary: "Set the limits and billing of an organisation: only the given fields; null removes a limit",
    description: "Started runs keep their prices and are still charged; `off` applies to runs that start later.",
    body: { schema: LimitsRequest },
    reply: {
      description: "The changed organisation, with its limits and billing",
      schema: ListedOrganization,
      example: { limits: { concurrent_rollouts: 50_000 }, billing: "postpaid", credit_limit_micros: 100_000_000 },
    },
    handle: changeOne,
  },
];

async function whoAmI(context: ApiContext): Promise<Response> {
  return context.json(await callerViewOf(context.env, context.var.caller));
}

/** The caller on the wire. */
export async function callerViewOf(env: Env, caller: Caller): Promise<WhoAmI> {
  const { id, name } = await organizationOf(env, caller);
  const { expiresAt, session } = caller;
  return {
    object: "caller",
    who: caller.who,
    organization: { id, name },
    project: await projectOf(env, caller),
    scopes: [...caller.permissions],
    expires_at: expiresAt === null ? null : seconds(expiresAt),
    session: session === undefined ? null : { id: session.id, expires_at: seconds(session.expiresAt) },
  };
}

async function projectOf(env: Env, caller: Caller): Promise<WhoAmI["project"]> {
  if (caller.projectId === null) return null;
  const project = await findProject(databaseOf(env), caller, caller.projectId);
  return project === null ? null : { id: project.id, name: project.name };
}

/** Throws only if the organisation's deletion started after the caller was identified. */
async function organizationOf(env: Env, { orgId }: Caller): Promise<OrganizationRow> {
  const organization = await findOrganization(databaseOf(env), orgId);
  if (organization !== null) return organization;
  throw new Refusal({ code: "not_found", message: "this organisation is being deleted", param: null });
}

async function makeFirst(context: ApiContext): Promise<Response> {
  const idempotencyKey = idempotencyKeyOf(context.req.raw);
  const token = /^Bearer +(\S+) *$/i.exec(context.req.header("authorization") ?? "")?.[1] ?? "";
  const refused = refuseFounder(context.env, token);
  if (refused?.ok === false) await refuseStranger(context, new Refusal(refused.error));
  const request = await readBody(context, BootstrapRequest);
  const options = { idempotencyKey, now: context.var.now() };
  const { value: made, replayed } = unwrap(await service(context).bootstrap(context.env, request, options));
  await logDone(context, made.id, { who: "bootstrap", action: "createFirstOrganization", made: made.key.id });
  context.header("location", "/v1/organization");
  if (replayed) context.header("idempotent-replayed", "true");
  return context.json(made, 201);
}

async function changeOwn(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, OrganizationPatch);
  return context.json(unwrap(await service(context).changeOrganization(context.env, context.var.caller, patch)));
}

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, OrganizationRequest);
  const made = await service(context).createOrganization(context.env, context.var.caller, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function listAll(context: ApiContext): Promise<Response> {
  const database = databaseOf(context.env);
  const pages = {
    find: (id: string) => findAnyOrganization(database, id),
    list: (page: Parameters<typeof listOrganizations>[1]) => listOrganizations(database, page),
  };
  return await pageReply(context, "an organisation", pages, listedOrganizationOf);
}

async function changeOne(context: ApiContext): Promise<Response> {
  const request = await readBody(context, LimitsRequest);
  return context.json(unwrap(await service(context).changeLimits(context.env, pathParam(context, "id"), request)));
}
