/** A project with one of everything that a route can name, made through the Worker's HTTP interface. */
import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { inject } from "vitest";
import { insertInvitation } from "../../../../src/accounts/queries/invitations.ts";
import { members, people } from "../../../../src/accounts/tables.ts";
import { insertBudget } from "../../../../src/billing/queries/budgets.ts";
import type { Role } from "../../../../src/contract/identity.ts";
import { CreatedRun } from "../../../../src/contract/run.ts";
import type { Scope } from "../../../../src/contract/scope.ts";
import { Leased, Registered } from "../../../../src/contract/trainer-wire.ts";
import { mintToken } from "../../../../src/core/ids.ts";
import { databaseOf } from "../../../../src/kernel/db/database.ts";
import { organizations, projects } from "../../../../src/kernel/db/schema.ts";
import { trainerObject } from "../../../../src/kernel/kit/names.ts";
import { minting, sha256Hex } from "../../../../src/kernel/kit/secrets.ts";
import { pack, send } from "../../../hub/packages.ts";
import { wheelOf } from "../../../hub/wheels.ts";
import { openPlatform, rolloutAt, type TestApi } from "../../platform.ts";
import { script } from "../../script.ts";
import { GOING, storeBatch } from "../../trainer-batch.ts";
import { uploaded } from "../../upload.ts";
import { newCode, newReportLink, newSession } from "./page-things.ts";

/** Ids of a tenant, by what they name. */
export interface Resources {
  readonly organization: string;
  readonly project: string;
  /** An eval that has ended, and its rollout. */
  readonly run: string;
  readonly rollout: string;
  /** Another eval of the same task. */
  readonly rival: string;
  /** An eval whose model does not answer. */
  readonly going: string;
  /** A training run whose first batch is leased. */
  readonly training: string;
  readonly token: string;
  readonly lease: string;
  readonly lease_token: string;
  readonly batch: string;
  readonly batch_sha256: string;
  readonly object_sha256: string;
  readonly dataset: string;
  /** With its only part. */
  readonly upload: string;
  readonly endpoint: string;
  /** With a replica; both have the name that all tenants use. */
  readonly fleet: string;
  readonly secret: string;
  readonly webhook: string;
  /** A test event that was sent to it. */
  readonly delivery: string;
  readonly trigger: string;
  readonly key: string;
  readonly person: string;
  readonly invitation: string;
  readonly invitation_token: string;
  readonly budget: string;
  /** A signed-in browser of the key, and a code that would sign in another one. */
  readonly session: string;
  readonly code: string;
  /** A link to the report of the run. */
  readonly report_link: string;
  readonly report_token: string;
  /** The deletion of a run that is gone. */
  readonly deletion: string;
  /** Path of a private environment, and of its only version. */
  readonly published: string;
  readonly published_version: string;
  /** Its name for npm, with the slash escaped. */
  readonly npm: string;
  /** Paths of a private Python environment, and of its only wheel. */
  readonly python: string;
  readonly wheel: string;
}

export interface Project {
  readonly scope: Scope;
  readonly api: TestApi;
  readonly things: Resources;
}

/** The name that all tenants give their things. */
export const NAME = "SAME_NAME";
export const ROWS = '{"question":"What is 2 + 2?","answer":"so it is #### 4"}\n';
const WRONG = { tool_calls: [{ name: "guess", arguments: { number: 900 } }] };
const GAME = { environment: "guess-number", environment_args: { max: 1000, max_turns: 2 }, num_examples: 1 };
export const PLAYED = { ...GAME, model: script([WRONG, WRONG]) };

/** `orgId`: an existing organisation. Its requests are not limited. */
export async function furnish(orgId?: string): Promise<Project> {
  const organization = orgId ?? `org_${crypto.randomUUID()}`;
  const unlimited = { requests_per_minute: null };
  const row = { id: organization, name: NAME, limits: unlimited, allowed_hosts: null, created_at: 0 };
  await drizzle(env.DB).insert(organizations).values(row).onConflictDoNothing();
  const api = await openPlatform(organization);
  const [run, rival, going, training, dataset, endpoint, secret, trigger] = await Promise.all([
    api.finish({ ...PLAYED, name: NAME }),
    api.finish(PLAYED),
    startGoing(api),
    train(api),
    uploaded(api, ROWS, `name=${NAME}`),
    newEndpoint(api, NAME),
    newSecret(api, NAME),
    newTrigger(api, NAME),
  ]);
  const [fleet, upload] = [await newFleet(api, NAME), await newUpload(api)];
  const [key, person, invited, deletion] = await Promise.all([
    newKey(api),
    newPerson(api),
    newInvitation(api),
    deleteOne(api),
  ]);
  const budget = await newBudget(api, person);
  const webhook = await newWebhook(api);
  const things = {
    ...{ organization, project: api.scope.projectId, run: run.id, rollout: rolloutAt(run.id) },
    ...{ rival: rival.id, going },
    ...{
      ...training,
      ...invited,
      ...webhook,
      dataset: dataset.id,
      upload,
      endpoint,
      fleet,
      secret,
      trigger,
      key,
      person,
    },
    ...{ deletion, budget, session: await newSession(api, key), code: await newCode(api, key) },
    ...(await newReportLink(api, run.id)),
    ...(await newPublished(api)),
  };
  const [owner = ""] = things.npm.slice(1).split("%2f");
  const python = await newPython(api, owner);
  return { scope: api.scope, api, things: { ...things, ...python } };
}

async function newPython(api: TestApi, owner: string): Promise<Pick<Resources, "python" | "wheel">> {
  const name = `game_${crypto.randomUUID().slice(0, 8)}`;
  const { file, bytes } = await wheelOf(name, "1.0.0");
  const reply = await send(api, bytes, `owner=${owner}&file=${file}`);
  if (!reply.ok) throw new Error(await reply.text());
  const path = `/python/${owner}`;
  return { python: `${path}/simple/${name.replace("_", "-")}/`, wheel: `${path}/files/${file}` };
}

export async function startGoing(api: TestApi): Promise<string> {
  const { id } = await api.start({ ...GAME, model: script([WRONG], undefined, { held: true }), name: NAME });
  return id;
}

export function newEndpoint(api: TestApi, name: string): Promise<string> {
  return newResource(api, "/v1/endpoints", { name, base_url: env.MODEL_URL, probe: false });
}

export async function newUpload(api: TestApi): Promise<string> {
  const id = await newResource(api, "/v1/dataset-uploads", {});
  const part = { method: "PUT", body: ROWS, headers: { "content-type": "application/octet-stream" } };
  const reply = await api.ask(`/v1/dataset-uploads/${id}/parts/1`, part);
  if (!reply.ok) throw new Error(await reply.text());
  return id;
}

async function newPublished(api: TestApi): Promise<Pick<Resources, "published" | "published_version" | "npm">> {
  const name = `owner-${crypto.randomUUID().slice(0, 8)}/game`;
  const code = inject("bundles")["guess-number"]?.text ?? "";
  const reply = await send(api, await pack({ name, version: "1.0.0", code }));
  // The other project of an organisation publishes under the owner that it has.
  const [, owner] = reply.status === 403 ? (/publishes as (.+)\/…,/.exec(await reply.text()) ?? []) : [];
  if (owner !== undefined) {
    const [other] = [`${owner}/game-${crypto.randomUUID().slice(0, 8)}`];
    const again = await send(api, await pack({ name: other, version: "1.0.0", code }));
    if (!again.ok) throw new Error(await again.text());
    return pathsTo(other);
  }
  if (!reply.ok) throw new Error(await reply.text());
  return pathsTo(name);
}

function pathsTo(name: string): Pick<Resources, "published" | "published_version" | "npm"> {
  const path = (id: string) => `/v1/environments/${encodeURIComponent(id)}`;
  const npm = `@${name.replace("/", "%2f")}`;
  return { published: path(name), published_version: path(`${name}@1.0.0`), npm };
}

export function newFleet(api: TestApi, name: string): Promise<string> {
  return newResource(api, "/v1/fleets", { name, replicas: [{ name: NAME, base_url: env.MODEL_URL }] });
}

export function newSecret(api: TestApi, name: string): Promise<string> {
  return newResource(api, "/v1/secrets", { name, value: "a value of some length" });
}

/** A test event has been sent to it. */
export async function newWebhook(api: TestApi): Promise<Pick<Resources, "webhook" | "delivery">> {
  const webhook = await newResource(api, "/v1/webhook-endpoints", {
    url: `${env.MODEL_URL}/hook`,
    events: ["batch.dead"],
  });
  return { webhook, delivery: await newResource(api, `/v1/webhook-endpoints/${webhook}/test`, {}) };
}

export function newTrigger(api: TestApi, name: string): Promise<string> {
  const verify = { scheme: "huggingface", secret: "a-secret-that-is-sent" };
  return newResource(api, "/v1/triggers", { name, verify, run: { ...PLAYED, endpoint: { base_url: env.MODEL_URL } } });
}

/** A budget of a person. */
export async function newBudget({ scope }: TestApi, target_id: string): Promise<string> {
  const id = `bud_${crypto.randomUUID()}`;
  const times = { created_at: 0, updated_at: 0 };
  await insertBudget(
    databaseOf(env),
    scope.orgId,
    { id, target_kind: "key", target_id, limit_micros: 1, ...times },
    null,
  );
  return id;
}

/** A program's key for the project. */
export function newKey(api: TestApi): Promise<string> {
  return newResource(api, "/v1/keys", { name: NAME, scopes: ["runs:read"], project: api.scope.projectId });
}

async function deleteOne(api: TestApi): Promise<string> {
  const { id } = await api.finish(PLAYED);
  const begun = await api.ask(`/v1/runs/${id}`, { method: "DELETE" });
  return (await begun.json<{ id: string }>()).id;
}

export async function newProject({ scope }: TestApi): Promise<string> {
  const id = `pj_${crypto.randomUUID()}`;
  const row = { id, org_id: scope.orgId, name: id, retention: {}, created_at: 0, deleted_at: null };
  await drizzle(env.DB).insert(projects).values(row);
  return id;
}

export async function newPerson({ scope }: TestApi): Promise<string> {
  return await joined(scope.orgId, "viewer");
}

/** A person with the role. */
export async function joined(org_id: string, role: Role): Promise<string> {
  const id = `per_${crypto.randomUUID()}`;
  const d1 = drizzle(env.DB);
  await d1.batch([
    d1.insert(people).values({ id, email: `${id}@example.com`, created_at: 0 }),
    d1.insert(members).values({ org_id, person_id: id, role, created_at: 0 }),
  ]);
  return id;
}

export async function newInvitation({ scope }: TestApi): Promise<Pick<Resources, "invitation" | "invitation_token">> {
  const [invitation, invitation_token] = [`inv_${crypto.randomUUID()}`, mintToken("rki", minting(env, 0))];
  const row = { id: invitation, email: `${invitation}@example.com`, role: "viewer" } as const;
  const invited_by = await joined(scope.orgId, "owner");
  const times = { created_at: 0, expires_at: 4_000_000_000_000, accepted_at: null };
  await insertInvitation(
    databaseOf(env),
    scope.orgId,
    { ...row, ...times, invited_by, hash: sha256Hex(invitation_token) },
    null,
  );
  return { invitation, invitation_token };
}

async function newResource(api: TestApi, folder: string, body: object): Promise<string> {
  const reply = await api.post(folder, body);
  if (!reply.ok) throw new Error(await reply.text());
  return (await reply.json<{ id: string }>()).id;
}

export const TRAINER = { trainer_id: "t0", kind: "test", protocol: "rl.batch/1" };

/** A training run that plays nothing. */
export async function beginTraining(api: TestApi): Promise<CreatedRun> {
  const request = {
    ...{ kind: "training", environment: "calculator", group_size: 2, max_steps: 9 },
    ...{ trainer: { encoding: "jsonl" }, endpoint: { base_url: env.MODEL_URL } },
    model: script(["no"], undefined, { held: true, tokens: true }),
  };
  const begun = await api.post("/v1/runs", request);
  if (begun.status !== 202) throw new Error(await begun.text());
  return CreatedRun.parse(await begun.json());
}

/** A training run whose first batch is leased, and its trainer. */
async function train(api: TestApi) {
  const { id, trainer } = await beginTraining(api);
  const { ready, manifest } = await storeBatch(api.scope, id, 1);
  await trainerObject(env, api.scope, id).ready([ready], GOING);
  const { epoch } = Registered.parse(await (await api.post(`/v1/runs/${id}/trainer/register`, TRAINER)).json());
  const asked = { trainer_id: "t0", epoch, want_step: 1, max_wait_s: 0 };
  const { lease } = Leased.parse(await (await api.post(`/v1/runs/${id}/trainer/lease`, asked)).json());
  return {
    ...{ training: id, token: trainer?.token ?? "", lease: lease.id, lease_token: lease.token },
    ...{ batch: manifest.batch_id, batch_sha256: manifest.sha256, object_sha256: manifest.objects[0]?.sha256 ?? "" },
  };
}
