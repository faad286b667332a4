/**
 * A stand-in for api.cloudflare.com on loopback: accounts, D1 (SQLite in memory), R2 buckets, queues and their consumers,
 * Workers with their versions and secrets, in the forms that wrangler and `rollcall deploy` send and read. It refuses
 * what Cloudflare refuses: names that are taken, bindings to things that do not exist, missing secrets.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { buffer } from "node:stream/consumers";

interface Binding {
  readonly type: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

export interface StubWorker {
  readonly bindings: readonly Binding[];
  readonly secrets: Readonly<Record<string, string>>;
  readonly migrationTag: string | null;
  readonly versions: number;
  /** Whether it has an address below workers.dev. */
  readonly published: boolean;
}

interface StubQueue {
  readonly id: string;
  readonly consumers: readonly { readonly script: string; readonly dead_letter_queue: string | null }[];
}

/** A request after its effect, as method and path, with each id and each name of a resource replaced by a star. */
export interface Seen {
  readonly kind: string;
  readonly number: number;
}

interface Reply {
  readonly status: number;
  readonly body: object;
}

interface Asked {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly raw: Buffer;
  /** The JSON body; an empty object for others. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The groups of the route's path. */
  readonly at: readonly string[];
}

const ACCOUNT = "a".repeat(32);
const QUEUES_PER_PAGE = 10;

const ok = (result: unknown, more: object = {}): Reply => ({
  status: 200,
  body: { success: true, errors: [], messages: [], result, ...more },
});
const page = (items: readonly unknown[]) =>
  ok(items, {
    result_info: { page: 1, per_page: 100, count: items.length, total_count: items.length, total_pages: 1 },
  });
const refuse = (status: number, code: number, message: string): Reply => ({
  status,
  body: { success: false, errors: [{ code, message }], messages: [], result: null },
});

export class CloudflareStub {
  readonly accounts: string[];
  /** The account has no name below workers.dev if it is null. */
  subdomain: string | null = "example";
  readonly databases = new Map<
    string,
    { readonly name: string; readonly sqlite: DatabaseSync; readonly made: object }
  >();
  readonly buckets = new Map<string, { objects: number; readonly made: object; lifecycle: unknown }>();
  readonly queues = new Map<string, StubQueue>();
  readonly workers = new Map<string, StubWorker>();
  /** The Worker at each custom domain. */
  readonly domains = new Map<string, string>();
  /** Host names with a DNS record that no Worker made. */
  readonly records = new Set<string>();
  /** Every request is answered with status 500. */
  refuseAll = false;
  readonly seen: Seen[] = [];
  /** Called after the effect of a request and before its reply; a promise that never resolves holds the reply back. */
  afterEffect: (seen: Seen) => Promise<void> = async () => undefined;
  #made = 0;

  private constructor(accounts: readonly string[]) {
    this.accounts = [...accounts];
  }

  static async start(accounts: readonly string[] = [ACCOUNT]) {
    const stub = new CloudflareStub(accounts);
    const server = createServer((request, response) => {
      stub.#answer(request).then(
        ({ status, body }) =>
          response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)),
        (thrown: unknown) => response.writeHead(500).end(String(thrown)),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const stop = async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    };
    return { stub, url: `http://127.0.0.1:${port}/client/v4`, stop };
  }

  /** Everything that exists, in an order that does not depend on the order in which it was made. */
  state() {
    const sorted = <T, Shown>(map: ReadonlyMap<string, T>, of: (value: T) => Shown): Record<string, Shown> =>
      Object.fromEntries([...map].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, of(value)]));
    return {
      databases: [...this.databases.values()].map(({ name, sqlite, made }) => ({
        ...{ name, made },
        tables: sqlite.prepare("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY name").all(),
        migrations: this.migrationsOf(name),
      })),
      buckets: sorted(this.buckets, (bucket) => bucket),
      queues: sorted(this.queues, ({ consumers }) => consumers),
      workers: sorted(this.workers, ({ bindings, secrets, migrationTag, published }) => ({
        bindings: bindings
          .filter(({ type }) => type !== "secret_text")
          .map(({ id, database_id, ...binding }) => binding),
        secrets: Object.keys(secrets).sort(),
        ...{ migrationTag, published },
      })),
    };
  }

  database(name: string): DatabaseSync | undefined {
    return [...this.databases.values()].find((database) => database.name === name)?.sqlite;
  }

  /** The applied migrations of a database; empty if the database does not exist. */
  migrationsOf(name: string): string[] {
    const sqlite = this.database(name);
    const table = sqlite?.prepare("SELECT 1 FROM sqlite_master WHERE name = 'd1_migrations'").get();
    if (sqlite === undefined || table === undefined) return [];
    return sqlite
      .prepare("SELECT name FROM d1_migrations ORDER BY id")
      .all()
      .map((row) => String(row["name"]));
  }

  async #answer(request: IncomingMessage): Promise<Reply> {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://stub");
    const path = pathname.replace("/client/v4", "");
    const raw = await buffer(request);
    if (request.headers.authorization === undefined) return refuse(400, 9106, "Missing Authorization header");
    const method = request.method ?? "";
    const asked = { method, query: searchParams, headers: request.headers, raw, body: jsonOf(raw) };
    const reply = await this.#route(path, asked);
    await this.note(`${method} ${kindOf(path)}`);
    return reply;
  }

  /** Records a request that had its effect and was not answered yet. */
  async note(kind: string): Promise<void> {
    const seen = { kind, number: this.seen.length + 1 };
    this.seen.push(seen);
    await this.afterEffect(seen);
  }

  async #route(path: string, asked: Omit<Asked, "at">): Promise<Reply> {
    if (this.refuseAll) return refuse(500, 1, "the stub is down");
    for (const [pattern, handle] of this.#routes) {
      const found = new RegExp(`^${pattern}$`).exec(path);
      if (found !== null) return await handle({ ...asked, at: found.slice(1) });
    }
    return refuse(404, 7003, `the stub has no ${asked.method} ${path}`);
  }

  readonly #routes: readonly (readonly [pattern: string, handle: (asked: Asked) => Reply | Promise<Reply>])[] = [
    ["/accounts", () => page(this.accounts.map((id) => ({ id, name: `Account ${id.slice(0, 1)}` })))],
    ["/memberships", () => page(this.accounts.map((id) => ({ id: `m-${id}`, account: { id, name: id } })))],
    ["/user", () => ok({ id: "user", email: "user@example.com" })],
    ["/accounts/\\w+/d1/database", (asked) => this.#databases(asked)],
    ["/accounts/\\w+/d1/database/([\\w-]+)", (asked) => this.#database(asked)],
    ["/accounts/\\w+/d1/database/([\\w-]+)/query", (asked) => this.#query(asked)],
    ["/accounts/\\w+/r2/buckets", (asked) => this.#bucketsOf(asked)],
    ["/accounts/\\w+/r2/buckets/([\\w-]+)", (asked) => this.#bucket(asked)],
    ["/accounts/\\w+/r2/buckets/([\\w-]+)/lifecycle", (asked) => this.#lifecycle(asked)],
    ["/accounts/\\w+/queues", (asked) => this.#queuesOf(asked)],
    ["/accounts/\\w+/queues/(\\w+)", (asked) => this.#queue(asked)],
    ["/accounts/\\w+/queues/(\\w+)/consumers(?:/([\\w-]+))?", (asked) => this.#consumer(asked)],
    ["/accounts/\\w+/workers/subdomain", () => this.#subdomain()],
    ["/accounts/\\w+/workers/workers/([\\w-]+)", (asked) => this.#worker(asked)],
    ["/accounts/\\w+/workers/services/([\\w-]+)", (asked) => this.#service(asked)],
    ["/accounts/\\w+/workers/scripts/([\\w-]+)", (asked) => this.#script(asked)],
    ["/accounts/\\w+/workers/scripts/([\\w-]+)/secrets(?:/(\\w+))?", (asked) => this.#secrets(asked)],
    ["/accounts/\\w+/workers/scripts/([\\w-]+)/versions", (asked) => this.#upload(asked)],
    ["/accounts/\\w+/workers/scripts/([\\w-]+)/deployments", (asked) => this.#deployments(asked)],
    ["/accounts/\\w+/workers/scripts/([\\w-]+)/(?:script-)?settings", (asked) => this.#settings(asked)],
    ["/accounts/\\w+/workers/scripts/([\\w-]+)/subdomain", (asked) => this.#publish(asked)],
    ["/accounts/\\w+/workers/scripts/[\\w-]+/assets-upload-session", () => ok({ jwt: ASSETS_TOKEN, buckets: [] })],
    ["/accounts/\\w+/workers/scripts/[\\w-]+/schedules", () => ok({ schedules: [] })],
    ["/accounts/\\w+/workers/scripts/[\\w-]+/domains/changeset", () => ok({ added: [], updated: [], conflicting: [] })],
    ["/accounts/\\w+/workers/scripts/([\\w-]+)/domains/records", (asked) => this.#giveDomain(asked)],
    ["/accounts/\\w+/workers/domains", (asked) => this.#domainsOf(asked)],
    ["/graphql", (asked) => this.analytics(asked.body)],
  ];

  /** The reply to a query for analytics. */
  analytics: (body: Readonly<Record<string, unknown>>) => Reply = () => ({
    status: 200,
    body: { data: { viewer: { accounts: [] } }, errors: null },
  });

  #databases({ method, query, body }: Asked): Reply {
    const name = String(body["name"] ?? query.get("name") ?? "");
    const found = [...this.databases].filter(([, database]) => database.name === name);
    if (method === "GET") return page(found.map(([uuid, database]) => ({ uuid, name: database.name })));
    if (found.length > 0) return refuse(400, 7502, "A database with that name already exists");
    const uuid = this.#newId();
    this.databases.set(uuid, { name, sqlite: new DatabaseSync(":memory:"), made: body });
    return ok({ uuid, name, version: "production", num_tables: 0, file_size: 0 });
  }

  #database({ method, at: [id = ""] }: Asked): Reply {
    const found = this.databases.get(id);
    if (found === undefined) return refuse(404, 7404, `The database ${id} could not be found`);
    if (method === "DELETE") this.databases.delete(id);
    return ok({ uuid: id, name: found.name });
  }

  /** One statement, or several that are applied together or not at all. */
  #query({ at: [id = ""], body }: Asked): Reply {
    const found = this.databases.get(id);
    if (found === undefined) return refuse(404, 7404, `The database ${id} could not be found`);
    const sql = String(body["sql"]);
    try {
      if (/^\s*select\b/i.test(sql)) {
        return ok([{ results: found.sqlite.prepare(sql).all(), success: true, meta: {} }]);
      }
      found.sqlite.exec(`BEGIN; ${sql.trim().replace(/;?$/, ";")} COMMIT;`);
      return ok([{ results: [], success: true, meta: {} }]);
    } catch (thrown) {
      if (found.sqlite.isTransaction) found.sqlite.exec("ROLLBACK");
      return refuse(400, 7500, String(thrown));
    }
  }

  #bucketsOf({ method, body, headers }: Asked): Reply {
    if (method === "GET") return ok({ buckets: [...this.buckets.keys()].map((name) => ({ name, creation_date: "" })) });
    const name = String(body["name"]);
    if (this.buckets.has(name))
      return refuse(409, 10004, "The bucket you tried to create already exists, and you own it.");
    const jurisdiction = headers["cf-r2-jurisdiction"];
    this.buckets.set(name, { objects: 0, made: { ...body, ...(jurisdiction && { jurisdiction }) }, lifecycle: null });
    return ok({ name });
  }

  #bucket({ method, at: [name = ""] }: Asked): Reply {
    const found = this.buckets.get(name);
    if (found === undefined) return refuse(404, 10006, "The specified bucket does not exist.");
    if (method !== "DELETE") return ok({ name });
    if (found.objects > 0) return refuse(409, 10008, "The bucket you tried to delete is not empty.");
    this.buckets.delete(name);
    return ok({});
  }

  #lifecycle({ at: [name = ""], body }: Asked): Reply {
    const found = this.buckets.get(name);
    if (found === undefined) return refuse(404, 10006, "The specified bucket does not exist.");
    found.lifecycle = body;
    return ok({});
  }

  #queuesOf({ method, query, body }: Asked): Reply {
    if (method === "POST") {
      const name = String(body["queue_name"]);
      if (this.queues.has(name)) return refuse(409, 11009, `Queue name '${name}' is already taken.`);
      this.queues.set(name, { id: this.#newId().replaceAll("-", ""), consumers: [] });
      return ok(this.#queueView(name));
    }
    const names = query.getAll("name");
    const all = [...this.queues.keys()].filter((name) => names.length === 0 || names.includes(name));
    const number = Number(query.get("page") ?? 1);
    const shown = all.slice((number - 1) * QUEUES_PER_PAGE, number * QUEUES_PER_PAGE);
    const result_info = { page: number, per_page: QUEUES_PER_PAGE, count: shown.length, total_count: all.length };
    return ok(
      shown.map((name) => this.#queueView(name)),
      { result_info },
    );
  }

  #queueView(name: string) {
    const queue = this.queues.get(name);
    return {
      queue_id: queue?.id,
      queue_name: name,
      producers: [],
      consumers: queue?.consumers.map(({ script }) => ({
        script,
        service: script,
        environment: "production",
        type: "worker",
        consumer_id: `c${queue.id}`,
      })),
      producers_total_count: 0,
      consumers_total_count: queue?.consumers.length,
      settings: {},
    };
  }

  #queueNamed(id: string): string | null {
    return [...this.queues].find(([, queue]) => queue.id === id)?.[0] ?? null;
  }

  #queue({ method, at: [id = ""] }: Asked): Reply {
    const name = this.#queueNamed(id);
    if (name === null) return refuse(404, 11000, "queue not found");
    const view = this.#queueView(name);
    if (method === "DELETE") this.queues.delete(name);
    return ok(view);
  }

  #consumer({ at: [id = ""], body }: Asked): Reply {
    const name = this.#queueNamed(id);
    const queue = name === null ? undefined : this.queues.get(name);
    if (name === null || queue === undefined) return refuse(404, 11000, "queue not found");
    const dead = typeof body["dead_letter_queue"] === "string" ? body["dead_letter_queue"] : null;
    if (dead !== null && !this.queues.has(dead))
      return refuse(400, 100127, `the dead letter queue ${dead} does not exist`);
    const script = String(body["script_name"]);
    if (!this.workers.has(script)) return refuse(400, 100100, `the Worker ${script} does not exist`);
    this.queues.set(name, { ...queue, consumers: [{ script, dead_letter_queue: dead }] });
    return ok({ consumer_id: `c${id}`, script, service: script, type: "worker" });
  }

  #subdomain(): Reply {
    if (this.subdomain === null) return refuse(404, 10007, "You do not have a workers.dev subdomain.");
    return ok({ subdomain: this.subdomain });
  }

  #service({ at: [name = ""] }: Asked): Reply {
    const worker = this.workers.get(name);
    if (worker === undefined) return refuse(404, 10090, "workers.api.error.service_not_found");
    const script = {
      id: name,
      tag: "tag",
      tags: [],
      last_deployed_from: "wrangler",
      migration_tag: worker.migrationTag,
    };
    return ok({ default_environment: { environment: "production", script } });
  }

  #worker({ at: [name = ""] }: Asked): Reply {
    const worker = this.workers.get(name);
    if (worker === undefined) return refuse(404, 10007, "This Worker does not exist on your account.");
    return ok({ id: name, name, tags: [], subdomain: { enabled: worker.published, previews_enabled: false } });
  }

  #publish({ method, body, at: [name = ""] }: Asked): Reply {
    const worker = this.workers.get(name);
    if (worker === undefined) return refuse(404, 10007, "This Worker does not exist on your account.");
    const published = method === "POST" ? body["enabled"] === true : worker.published;
    this.workers.set(name, { ...worker, published });
    return ok({ enabled: published, previews_enabled: false });
  }

  async #script(asked: Asked): Promise<Reply> {
    const [name = ""] = asked.at;
    if (asked.method === "PUT") return await this.#upload(asked);
    if (!this.workers.has(name)) return refuse(404, 10007, "This Worker does not exist on your account.");
    if (asked.method === "DELETE") this.workers.delete(name);
    return ok({ id: name });
  }

  /** A new version: bindings are checked, and secrets that it does not name are kept. `inherit`: as before. */
  async #upload({ method, headers, raw, at: [name = ""] }: Asked): Promise<Reply> {
    if (method === "GET") return ok({ items: [] });
    const form = await new Response(new Uint8Array(raw), {
      headers: { "content-type": headers["content-type"] ?? "" },
    }).formData();
    const metadata = JSON.parse(String(form.get("metadata")));
    const bindings: readonly Binding[] = metadata.bindings;
    const before = this.workers.get(name);
    for (const binding of bindings) {
      const refused = this.#refuseBinding(binding, before);
      if (refused !== null) return refused;
    }
    const secrets = bindings
      .filter(({ type }) => type === "secret_text")
      .map((secret) => [secret.name, String(secret["text"])]);
    this.workers.set(name, {
      bindings: bindings.flatMap((binding) => {
        const inherited = before?.bindings.filter(({ name: known }) => known === binding.name) ?? [];
        return binding.type === "inherit" ? inherited : [binding];
      }),
      secrets: { ...before?.secrets, ...Object.fromEntries(secrets) },
      migrationTag: metadata.migrations?.new_tag ?? before?.migrationTag ?? null,
      versions: (before?.versions ?? 0) + 1,
      published: before?.published ?? false,
    });
    const id = this.#newId();
    const resources = { bindings: [], script: { etag: "e" }, script_runtime: {} };
    return ok({ id, etag: "e", startup_time_ms: 33, deployment_id: id, number: 1, metadata: {}, resources });
  }

  #refuseBinding(binding: Binding, before: StubWorker | undefined): Reply | null {
    const { type, name } = binding;
    const inherited = before?.secrets[name] ?? before?.bindings.find((binding) => binding.name === name);
    if (type === "inherit" && inherited === undefined) {
      return refuse(400, 10057, `inherit binding '${name}' is invalid`);
    }
    if (type === "d1" && !this.databases.has(String(binding["id"] ?? binding["database_id"]))) {
      return refuse(400, 10021, `binding ${name} of type d1 must have a valid \`id\` specified`);
    }
    if (type === "r2_bucket" && !this.buckets.has(String(binding["bucket_name"]))) {
      return refuse(400, 10085, `R2 bucket '${binding["bucket_name"]}' not found`);
    }
    if (type === "queue" && !this.queues.has(String(binding["queue_name"]))) {
      return refuse(400, 10100, `Queue '${binding["queue_name"]}' not found`);
    }
    return null;
  }

  #secrets({ method, at: [name = "", secret] }: Asked): Reply {
    const worker = this.workers.get(name);
    if (worker === undefined) return refuse(404, 10007, "This Worker does not exist on your account.");
    if (method === "GET") return ok(Object.keys(worker.secrets).map((title) => ({ name: title, type: "secret_text" })));
    if (secret === undefined || worker.secrets[secret] === undefined) return refuse(404, 10056, "Binding not found");
    const { [secret]: _gone, ...secrets } = worker.secrets;
    this.workers.set(name, { ...worker, secrets });
    return ok(null);
  }

  #deployments({ method, at: [name = ""] }: Asked): Reply {
    const worker = this.workers.get(name);
    if (worker === undefined) return refuse(404, 10007, "This Worker does not exist on your account.");
    if (method === "POST") return ok({ id: this.#newId() });
    const version_id = `version-${worker.versions}`;
    const versions = [{ version_id, percentage: 100 }];
    const latest = { id: "deployment", source: "wrangler", created_on: "2026-11-29T00:00:00Z", versions };
    return ok({ deployments: [latest] });
  }

  #domainsOf({ query }: Asked): Reply {
    const hostname = query.get("hostname");
    return ok(
      [...this.domains].flatMap(([name, service]) =>
        name === hostname ? [{ id: name, hostname: name, service }] : [],
      ),
    );
  }

  /** Replaces the domains of a Worker. What has a domain loses it only if the request says so. */
  #giveDomain({ body, at: [worker = ""] }: Asked): Reply {
    const asked = (body["origins"] as { hostname: string }[]).map(({ hostname }) => hostname);
    for (const hostname of asked) {
      const other = this.domains.get(hostname);
      if (other !== undefined && other !== worker && body["override_existing_origin"] !== true) {
        return refuse(409, 100116, `${hostname} is already in use by ${other}`);
      }
      if (this.records.has(hostname) && body["override_existing_dns_record"] !== true) {
        return refuse(409, 100117, `Hostname '${hostname}' already has externally managed DNS records`);
      }
    }
    for (const [hostname, owner] of this.domains) if (owner === worker) this.domains.delete(hostname);
    for (const hostname of asked) {
      this.records.delete(hostname);
      this.domains.set(hostname, worker);
    }
    return ok([]);
  }

  #settings({ at: [name = ""] }: Asked): Reply {
    const worker = this.workers.get(name);
    if (worker === undefined) return refuse(404, 10007, "This Worker does not exist on your account.");
    return ok({ bindings: worker.bindings, migration_tag: worker.migrationTag, tags: [] });
  }

  #newId(): string {
    this.#made += 1;
    const hex = createHash("sha256").update(String(this.#made)).digest("hex");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
  }
}

/** A JWT that has not expired: {"exp": 4070908800}. */
const ASSETS_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQwNzA5MDg4MDB9.x";

function jsonOf(raw: Buffer): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(raw.toString("utf8"));
  } catch {
    // A form with a Worker, or no body.
    return {};
  }
}

/** The path without what differs between two resources of a kind. */
function kindOf(path: string): string {
  return path
    .replace(/^\/accounts\/\w+/, "")
    .replace(/\/(database|buckets|queues|scripts|services|workers\/workers|consumers|secrets)\/[\w-]+/g, "/$1/*");
}
