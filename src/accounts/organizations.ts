/**
 * Organisations: the first one of a deployment, further ones that an operator creates, and changes by their own people.
 * An organisation is created with a project and a key, all or nothing; the key is shown once.
 *
 * Invariant. The operator's Idempotency-Key is stored first, with the id of the new organisation, which may be in another
 * D1 database. After a kill in between, a repeat creates that organisation.
 */

import { type Caller, DEFAULT_PROJECT, type Permission } from "../contract/identity.ts";
import { canonicalJson } from "../contract/json.ts";
import { ofOrganization } from "../contract/scope.ts";
import { type Minting, mintId } from "../core/ids.ts";
import { notifyAccount } from "../kernel/account/tell-account.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { remember } from "../kernel/db/idempotency-keys.ts";
import { noteSettingsChanged } from "../kernel/kit/account-hooks.ts";
import { given } from "../kernel/kit/given.ts";
import { type CreateOptions, replay, toRemember } from "../kernel/kit/idempotency.ts";
import { isSameText, minting, repeatableBytes } from "../kernel/kit/secrets.ts";
import { type Result, refuse, refuseOneProject } from "../kernel/messages/refusal.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { createdKeyOf, mintKey } from "./mint-key.ts";
import { listApiKeys } from "./queries/api-keys.ts";
import {
  type Founding,
  findFoundedWith,
  findOrganization,
  insertFirstOrganization,
  insertOrganization,
  listedOrganizationOf,
  numberForOrganization,
  organizationViewOf,
  updateOrganization,
} from "./queries/organizations.ts";
import { listProjects, type NamedProject, projectViewOf } from "./queries/projects.ts";
import type {
  BootstrapRequest,
  CreatedOrganization,
  LimitsRequest,
  ListedOrganization,
  OrganizationPatch,
  OrganizationRequest,
  OrganizationView,
} from "./wire.ts";

const OPERATION = "createOrganization";
/** The least number of characters: anyone can try to guess the token. */
const LEAST_TOKEN = 32;

/** Refuses unless this is the deployment's bootstrap token, which creates its first organisation. */
export function refuseFounder({ ROLLCALL_BOOTSTRAP_TOKEN: expected = "" }: Env, token: string): Result<never> | null {
  if (expected === "") return refuse("not_found", "this deployment has no ROLLCALL_BOOTSTRAP_TOKEN", null);
  if (expected.length < LEAST_TOKEN) {
    return refuse(
      "not_found",
      `ROLLCALL_BOOTSTRAP_TOKEN has fewer than ${LEAST_TOKEN} characters: set a longer one`,
      null,
    );
  }
  if (isSameText(token, expected)) return null;
  return refuse("unauthorized", "send ROLLCALL_BOOTSTRAP_TOKEN as: Authorization: Bearer <token>", null);
}

/**
 * Creates the first organisation, once. Of several concurrent requests, one succeeds. The token of its key is derived
 * from the Idempotency-Key, so a repeat gets the same one. Otherwise a lost reply would lose the only key.
 */
export async function bootstrap(
  env: Env,
  { name }: BootstrapRequest,
  { idempotencyKey, now }: Pick<CreateOptions, "idempotencyKey" | "now">,
): Promise<Result<{ value: CreatedOrganization; replayed: boolean }>> {
  const by = { scopes: ["admin", "operator"], created_by: "bootstrap" } as const;
  const random =
    idempotencyKey === null
      ? undefined
      : repeatableBytes(env, canonicalJson(["bootstrap", env.ROLLCALL_BOOTSTRAP_TOKEN ?? "", idempotencyKey]));
  const id = mintId("org", minting(env, now));
  const founded = foundingOf(env, id, { name, project: DEFAULT_PROJECT, limits: {} }, by, { now, random });
  if (await insertFirstOrganization(databaseOf(env), founded.rows)) {
    return { ok: true, value: { value: createdOf(founded), replayed: false } };
  }
  const orgId = await findFoundedWith(databaseOf(env), founded.rows.key.hash);
  const before = orgId === null ? null : await readFounded(env, orgId, founded.token);
  if (before !== null) return { ok: true, value: { value: before, replayed: true } };
  return refuse("conflict", "an organisation already exists: use its keys", null);
}

/** Creates another organisation, for an operator. */
export async function createOrganization(
  env: Env,
  caller: Caller,
  request: OrganizationRequest,
  options: CreateOptions,
): Promise<Result<{ value: CreatedOrganization; replayed: boolean }>> {
  const claimed = await claimId(env, caller, options);
  if (!claimed.ok) return claimed;
  const id = claimed.value;
  const before = await readFounded(env, id, null);
  if (before !== null) return { ok: true, value: { value: before, replayed: true } };
  const by = { scopes: ["admin"], created_by: caller.who } as const;
  const founded = foundingOf(env, id, request, by, { now: options.now });
  if (await insertOrganization(databaseOf(env), founded.rows)) {
    return { ok: true, value: { value: createdOf(founded), replayed: false } };
  }
  const faster = await readFounded(env, id, null);
  if (faster !== null) return { ok: true, value: { value: faster, replayed: true } };
  return refuse("conflict", "what this Idempotency-Key created was deleted: use another key", null);
}

/** The id of the organisation to create: that of an earlier request with the same Idempotency-Key, or a new one. */
async function claimId(env: Env, caller: Caller, options: CreateOptions): Promise<Result<string>> {
  const scope = ofOrganization(caller.orgId);
  const claimed = () => replay(env, scope, OPERATION, options, async (id) => id);
  const before = await claimed();
  if (before !== null) return before;
  const database = await numberForOrganization(databaseOf(env));
  const id = mintId("org", { ...minting(env, options.now), database });
  const remembered = toRemember(OPERATION, id, options);
  if (remembered === null) return { ok: true, value: id };
  await remember(databaseOf(env), caller.orgId, remembered);
  // Another request may have been faster.
  return (await claimed()) ?? { ok: true, value: id };
}

/** Sets what an operator may set of any organisation. Absent fields stay unchanged. */
export async function changeLimits(
  env: Env,
  id: string,
  { limits, ...billing }: LimitsRequest,
): Promise<Result<ListedOrganization>> {
  const changes = { ...given(billing), ...(limits && { limits: given(limits) }) };
  const after = await updateOrganization(databaseOf(env), id, changes);
  if (after === null) return notFound("organization", id);
  // The entry of this change is in the operator's log.
  await noteSettingsChanged(env, id);
  await notifyAccount(env, id);
  return { ok: true, value: listedOrganizationOf(after) };
}

/** Sets what the organisation's own people may set. */
export async function changeOrganization(
  env: Env,
  caller: Caller,
  patch: OrganizationPatch,
): Promise<Result<OrganizationView>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  const after = await updateOrganization(databaseOf(env), caller.orgId, given(patch));
  if (after === null) return notFound("organization", caller.orgId);
  return { ok: true, value: organizationViewOf(after) };
}

interface Founded {
  readonly rows: Founding & { readonly project: NamedProject };
  readonly token: string;
}

function foundingOf(
  env: Env,
  orgId: string,
  { name, project, limits }: OrganizationRequest,
  by: { readonly scopes: readonly Permission[]; readonly created_by: string },
  { now, random }: { readonly now: number; readonly random?: Minting["random"] | undefined },
): Founded {
  const mint = minting(env, now);
  const times = { created_at: now, deleted_at: null };
  const unbilled = { billing: "off", credit_limit_micros: null } as const;
  const organization = {
    id: orgId,
    name,
    limits: given(limits),
    allowed_hosts: null,
    ...unbilled,
    ...times,
  };
  const first = { id: mintId("pj", mint), org_id: organization.id, name: project, retention: {}, ...times };
  const reach = { project_id: null, person_id: null, maker_id: null, requests_per_minute: null, expires_at: null };
  const { row, token } = mintKey(env, { name: "first key", ...by, ...reach }, { orgId, now, random });
  return { rows: { organization, project: first, key: row }, token };
}

function createdOf({ rows, token }: Founded): CreatedOrganization {
  const { organization, project, key } = rows;
  return { ...organizationViewOf(organization), project: projectViewOf(project), key: createdKeyOf(key, token) };
}

/** An organisation with its first project and its first key, whose token is `token`; null if one of them is gone. */
async function readFounded(env: Env, id: string, token: string | null): Promise<CreatedOrganization | null> {
  const all = { orgId: id, projectId: null };
  const first = { after: null, limit: 1, order: "asc" } as const;
  const [project] = await listProjects(databaseOf(env), all, first);
  const [key] = await listApiKeys(databaseOf(env), all, first);
  const organization = await findOrganization(databaseOf(env), id);
  if (organization === null || project === undefined || key === undefined) return null;
  return { ...organizationViewOf(organization), project: projectViewOf(project), key: createdKeyOf(key, token) };
}
