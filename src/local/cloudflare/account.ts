/**
 * The resources of a deployment in a Cloudflare account, found by their names. Each is looked for before it is created,
 * so that a deployment that was interrupted can continue.
 */
import * as z from "zod";
import { type CloudflareApi, CloudflareFailed } from "./api.ts";

const Account = z.object({ id: z.string(), name: z.string() });
export type Account = z.infer<typeof Account>;

/** The accounts that these credentials reach. */
export function listAccounts(api: CloudflareApi): Promise<Account[]> {
  return api.list("/accounts", Account, { per_page: "50" });
}

/** Where data is stored: a hint, or a jurisdiction that it never leaves. It cannot be changed later. */
export interface Place {
  readonly location?: string | undefined;
  readonly jurisdiction?: string | undefined;
}

const Database = z.object({ uuid: z.string(), name: z.string() });
const Queue = z.object({ queue_id: z.string(), queue_name: z.string() });
const Bucket = z.object({ name: z.string() });
const Secret = z.object({ name: z.string() });
const Subdomain = z.object({ subdomain: z.string() });
const Domain = z.object({ hostname: z.string(), service: z.string() });
const Deployments = z.object({
  deployments: z.array(z.object({ created_on: z.string(), versions: z.array(z.object({ version_id: z.string() })) })),
});
const NOT_EMPTY = 10008;
/** The account has no workers.dev subdomain. */
const NO_SUBDOMAIN = 10007;
const A_DAY_S = 86_400;

export class CloudflareAccount {
  readonly id: string;
  readonly #api: CloudflareApi;

  constructor(api: CloudflareApi, id: string) {
    this.#api = api;
    this.id = id;
  }

  get #path(): string {
    return `/accounts/${this.id}`;
  }

  /** The id of the database; null if there is none of this name. */
  async findDatabase(name: string): Promise<string | null> {
    const found = await this.#api.list(`${this.#path}/d1/database`, Database, { name });
    return found.find((database) => database.name === name)?.uuid ?? null;
  }

  /** Returns its id. */
  async createDatabase(name: string, { location, jurisdiction }: Place): Promise<string> {
    const body = {
      name,
      ...(location !== undefined && { primary_location_hint: location }),
      ...(jurisdiction !== undefined && { jurisdiction }),
    };
    return (await this.#api.ask(`POST ${this.#path}/d1/database`, Database, { body })).uuid;
  }

  async deleteDatabase(id: string): Promise<void> {
    await this.#api.find(`DELETE ${this.#path}/d1/database/${id}`, z.unknown());
  }

  async hasBucket(name: string, place: Place): Promise<boolean> {
    const found = await this.#api.find(`GET ${this.#path}/r2/buckets/${name}`, Bucket, inJurisdiction(place));
    return found !== null;
  }

  async createBucket(name: string, place: Place): Promise<void> {
    const body = { name, ...(place.location !== undefined && { locationHint: place.location }) };
    await this.#api.ask(`POST ${this.#path}/r2/buckets`, z.unknown(), { body, ...inJurisdiction(place) });
  }

  /** Returns false if it has objects, which R2 does not delete with it. */
  async deleteBucket(name: string, place: Place): Promise<boolean> {
    try {
      await this.#api.find(`DELETE ${this.#path}/r2/buckets/${name}`, z.unknown(), inJurisdiction(place));
      return true;
    } catch (thrown) {
      if (thrown instanceof CloudflareFailed && thrown.code === NOT_EMPTY) return false;
      throw thrown;
    }
  }

  /** Makes R2 delete all objects of the bucket when they are a day old. */
  async expireObjects(name: string, place: Place): Promise<void> {
    const rule = {
      id: "delete everything",
      enabled: true,
      conditions: { prefix: "" },
      deleteObjectsTransition: { condition: { type: "Age", maxAge: A_DAY_S } },
    };
    const path = `${this.#path}/r2/buckets/${name}/lifecycle`;
    await this.#api.ask(`PUT ${path}`, z.unknown(), { body: { rules: [rule] }, ...inJurisdiction(place) });
  }

  /** Ids by name, of all queues of the account. */
  async listQueues(): Promise<ReadonlyMap<string, string>> {
    const queues = await this.#api.list(`${this.#path}/queues`, Queue);
    return new Map(queues.map(({ queue_name: name, queue_id: id }) => [name, id]));
  }

  async createQueue(name: string): Promise<void> {
    await this.#api.ask(`POST ${this.#path}/queues`, Queue, { body: { queue_name: name } });
  }

  async deleteQueue(id: string): Promise<void> {
    await this.#api.find(`DELETE ${this.#path}/queues/${id}`, z.unknown());
  }

  /** The names of a Worker's secrets; null if the Worker does not exist. */
  async secretsOf(worker: string): Promise<readonly string[] | null> {
    const path = `${this.#path}/workers/scripts/${worker}/secrets`;
    const secrets = await this.#api.find(`GET ${path}`, z.array(Secret));
    return secrets === null ? null : secrets.map(({ name }) => name);
  }

  async deleteSecret(worker: string, name: string): Promise<void> {
    await this.#api.find(`DELETE ${this.#path}/workers/scripts/${worker}/secrets/${name}`, z.unknown());
  }

  /** The version that serves most requests, and since when; null if nothing was deployed. */
  async findVersion(worker: string): Promise<{ readonly id: string; readonly since: string } | null> {
    const found = await this.#api.find(`GET ${this.#path}/workers/scripts/${worker}/deployments`, Deployments);
    const [latest] = found?.deployments ?? [];
    const id = latest?.versions[0]?.version_id;
    return latest === undefined || id === undefined ? null : { id, since: latest.created_on };
  }

  /** Its Durable Objects and their data go with it. */
  async deleteWorker(worker: string): Promise<void> {
    const query = { force: "true" };
    await this.#api.find(`DELETE ${this.#path}/workers/scripts/${worker}`, z.unknown(), { query });
  }

  /** The account's name below workers.dev; null if it has none yet. */
  async findSubdomain(): Promise<string | null> {
    try {
      const found = await this.#api.find(`GET ${this.#path}/workers/subdomain`, Subdomain);
      return found?.subdomain ?? null;
    } catch (thrown) {
      if (thrown instanceof CloudflareFailed && thrown.code === NO_SUBDOMAIN) return null;
      throw thrown;
    }
  }

  /** The Worker at this domain; null if no Worker of the account has it. */
  async findWorkerAt(domain: string): Promise<string | null> {
    const found = await this.#api.list(`${this.#path}/workers/domains`, Domain, { hostname: domain });
    return found.find(({ hostname }) => hostname === domain)?.service ?? null;
  }

  /** Gives a Worker this domain as its only one. Refused if another Worker has it, or if it has a DNS record. */
  async giveDomain(worker: string, domain: string): Promise<void> {
    const keep = { override_existing_origin: false, override_existing_dns_record: false };
    const body = { override_scope: true, ...keep, origins: [{ hostname: domain }] };
    await this.#api.ask(`PUT ${this.#path}/workers/scripts/${worker}/domains/records`, z.unknown(), { body });
  }

  database(id: string): RemoteDatabase {
    return new RemoteDatabase(this.#api, `${this.#path}/d1/database/${id}`);
  }
}

function inJurisdiction({ jurisdiction }: Place): { readonly headers?: Readonly<Record<string, string>> } {
  return jurisdiction === undefined ? {} : { headers: { "cf-r2-jurisdiction": jurisdiction } };
}

const Results = z.array(z.object({ results: z.array(z.record(z.string(), z.unknown())).default([]) }));

/** A D1 database over Cloudflare's API. */
export class RemoteDatabase {
  readonly #api: CloudflareApi;
  readonly #path: string;

  constructor(api: CloudflareApi, path: string) {
    this.#api = api;
    this.#path = path;
  }

  /** The rows of the last statement. Several statements are applied together or not at all. */
  async query(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const results = await this.#api.ask(`POST ${this.#path}/query`, Results, { body: { sql } });
    return results.at(-1)?.results ?? [];
  }

  async hasTable(name: string): Promise<boolean> {
    const rows = await this.query(`SELECT name FROM sqlite_master WHERE type = 'table' AND name = '${name}'`);
    return rows.length > 0;
  }
}
