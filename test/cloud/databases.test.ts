/** A deployment with two D1 databases, in a real workerd: every organisation is in one of them. */
import { expect, onTestFinished, test, vi } from "vitest";
import { TEST_HANGS_MS, WAIT, WAIT_HANGS_MS } from "../hang-limits.ts";
import { startArithmeticModel } from "../local/arithmetic-model.ts";
import { openBackupStand, SECRET, seenBy } from "./backup-stand.ts";
import { startWorker, type WorkerPlatform } from "./worker-platform.ts";

const GAME = {
  environment: "calculator",
  model: "m",
  num_examples: 4,
  endpoint: { base_url: "http://127.0.0.1:9/v1" },
};

/** Sends `METHOD /path` with a key, or a cookie. */
async function ask(url: string, route: string, key: string | null, body?: unknown, headers = {}) {
  const [method = "", path = ""] = route.split(" ");
  const reply = await fetch(url + path, {
    method,
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  const isJson = reply.headers.get("content-type")?.startsWith("application/json");
  return { status: reply.status, body: isJson ? JSON.parse(text) : text };
}

/** How many rows a D1 database has with this text in `org_id`, or as the id of an organisation, by table. */
async function rowsOf(database: D1Database | undefined, orgId: string): Promise<Record<string, number>> {
  if (database === undefined) throw new Error("the deployment has no such database");
  const tables = await database
    .prepare("select name from sqlite_master where type = 'table' and name not like '_cf%'")
    .all<{ name: string }>();
  const counts: Record<string, number> = {};
  for (const { name } of tables.results) {
    const columns = await database.prepare(`select name from pragma_table_info('${name}')`).all<{ name: string }>();
    const column = name === "organizations" ? "id" : columns.results.find((one) => one.name === "org_id")?.name;
    if (column === undefined) continue;
    const n = await database
      .prepare(`select count(*) as n from ${name} where ${column} = ?`)
      .bind(orgId)
      .first<number>("n");
    if (n !== null && n > 0) counts[name] = n;
  }
  return counts;
}

async function newOrganization(platform: WorkerPlatform, operator: string, name: string, key?: string) {
  const headers = key === undefined ? {} : { "idempotency-key": key };
  const made = await ask(platform.url, "POST /v1/organizations", operator, { name }, headers);
  return { status: made.status, id: String(made.body.id), key: String(made.body.key?.key) };
}

/** A run of four rollouts that has ended. */
async function playRun(platform: WorkerPlatform, key: string): Promise<string> {
  const client = platform.client(key);
  const model = await startArithmeticModel(0);
  onTestFinished(() => model.stop());
  const endpoint = { base_url: model.url, api_key: "a-key-of-the-endpoint" };
  const { id } = await client.runs.create({
    environment: "calculator",
    model: "arithmetic",
    endpoint,
    num_examples: 4,
  });
  for await (const _ of client.runs.events(id, { signal: AbortSignal.timeout(WAIT_HANGS_MS) }));
  expect(await client.runs.get(id)).toMatchObject({ status: "completed", counts: { scored: 4 } });
  return id;
}

test("organisations are spread over the databases, and each works, is listed and is deleted where it is", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const platform = await startWorker(SECRET, [], 2);
  const { url } = platform;
  const [main, second] = platform.databases;
  const operator = await platform.found();
  const inSecond = await newOrganization(platform, operator, "in the second");
  const inMain = await newOrganization(platform, operator, "in the first");
  expect([inSecond.id, inSecond.key]).toEqual([expect.stringMatching(/^org_1_/), expect.stringMatching(/^rk_1_/)]);
  expect([inMain.id, inMain.key]).toEqual([
    expect.stringMatching(/^org_\w{34}$/),
    expect.stringMatching(/^rk_\w{48}$/),
  ]);

  const run = await playRun(platform, inSecond.key);
  await playRun(platform, inMain.key);
  const call = (route: string, body?: unknown, headers = {}) => ask(url, route, inSecond.key, body, headers);
  expect((await call(`GET /v1/runs/${run}/audit`)).body).toMatchObject({ holds: true });
  expect((await ask(url, `GET /v1/runs/${run}`, inMain.key)).status).toBe(404);

  const { body: code } = await call("POST /v1/sign-in-codes");
  expect(code.code).toMatch(/^rkc_1_/);
  const { body: link } = await call(`POST /v1/runs/${run}/report-links`, { expires_in_s: 3600 });
  const token = String(link.url).split("#")[1] ?? "";
  expect(token).toMatch(/^rkr_1_/);
  expect((await ask(url, "GET /v1/shared-report", token)).status).toBe(200);

  const hook = { name: "on-merge", verify: { scheme: "standard" }, run: GAME };
  const { body: trigger } = await call("POST /v1/triggers", hook);
  expect(trigger).toMatchObject({ id: expect.stringMatching(/^tr_1_/) });
  expect((await ask(url, `POST /hooks/${trigger.id}`, null, {})).status).toBe(401);
  expect((await ask(url, `POST /hooks/${trigger.id.replace("tr_1_", "tr_")}`, null, {})).status).toBe(404);

  const { body: invited } = await call("POST /v1/invitations", { email: "ann@example.com", role: "developer" });
  expect(invited).toMatchObject({ token: expect.stringMatching(/^rki_1_/) });
  const { body: ann } = await ask(url, "POST /v1/invitations/accept", null, { token: invited.token, name: "Ann" });
  expect((await ask(url, "GET /v1/whoami", ann.key.key)).body.organization.id).toBe(inSecond.id);

  const listed: string[] = [];
  for (let after = ""; ; ) {
    const { body } = await ask(url, `GET /v1/organizations?limit=1&order=asc${after}`, operator);
    listed.push(...body.data.map(({ id }: { id: string }) => id));
    if (!body.has_more) break;
    after = `&after=${body.last_id}`;
  }
  const first = (await ask(url, "GET /v1/whoami", operator)).body.organization.id;
  expect(listed).toEqual([first, inSecond.id, inMain.id]);
  const limits = { limits: { concurrent_rollouts: 7 } };
  expect((await ask(url, `PATCH /v1/organizations/${inSecond.id}`, operator, limits)).status).toBe(200);
  expect((await ask(url, `PATCH /v1/organizations/org_9_none`, operator, limits)).status).toBe(404);
  // Rows of runs are written soon after their end.
  const scored = async () => (await ask(url, "GET /metrics", operator)).body.match(/outcome="scored"[^\n]* (\d+)/)?.[1];
  await vi.waitUntil(async () => (await scored()) === "8", WAIT);

  expect(await rowsOf(main, inSecond.id)).toEqual({});
  expect(await rowsOf(second, inMain.id)).toEqual({});
  expect(await rowsOf(second, inSecond.id)).toMatchObject({ organizations: 1, runs: 1, triggers: 1, members: 1 });
  // The run of the other one ended just now: its objects are kept for some minutes.
  const short = await newOrganization(platform, operator, "short");
  expect(short.id).toMatch(/^org_1_/);
  const gone = await ask(url, "DELETE /v1/organization", short.key, { confirm: "short" });
  const deletion = () => ask(url, `GET /v1/deletions/${gone.body.id}`, operator);
  await vi.waitUntil(async () => (await deletion()).body.state === "done", WAIT);
  expect([await rowsOf(main, short.id), await rowsOf(second, short.id)]).toEqual([{}, { deletions: 1 }]);
  expect((await ask(url, "GET /v1/whoami", short.key)).status).toBe(401);
  expect((await call("GET /v1/whoami")).status).toBe(200);
  expect(platform.said).toEqual([]);
});

test("a request to create an organisation that was killed after its key was stored creates it when it is repeated", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const platform = await startWorker(SECRET, [], 2);
  const [main, second] = platform.databases;
  const operator = await platform.found();
  // The second database refuses the rows, as if the process had ended before them.
  const refuse = "create trigger killed before insert on organizations begin select raise(abort, 'killed'); end";
  await second?.prepare(refuse).run();
  expect((await newOrganization(platform, operator, "late", "once")).status).toBe(500);
  const claimed = await main
    ?.prepare("select resource_id as id from idempotency_keys where key = 'once'")
    .first<string>("id");
  await second?.prepare("drop trigger killed").run();
  const [made, again] = await Promise.all([1, 2].map(() => newOrganization(platform, operator, "late", "once")));
  expect([made?.id, again?.id]).toEqual([claimed, claimed]);
  expect([made?.status, again?.status]).toEqual([201, 201]);
  expect(await rowsOf(second, String(claimed))).toEqual({ organizations: 1, projects: 1, api_keys: 1 });
  const shown = [made, again].map((one) => one?.key).filter((key) => key?.startsWith("rk_1_"));
  expect(shown).toHaveLength(1);
  expect((await ask(platform.url, "GET /v1/whoami", shown[0] ?? "")).body.organization.id).toBe(claimed);
});

test("a backup has the rows of all databases, and is restored into as many", { timeout: TEST_HANGS_MS }, async () => {
  const stand = await openBackupStand();
  const prod = await stand.deployment("prod", SECRET, 2);
  const operator = await prod.found();
  const { key } = await newOrganization(prod, operator, "in the second");
  expect(key).toMatch(/^rk_1_/);
  const run = await playRun(prod, key);
  const before = await seenBy(prod, key, run);
  expect((await stand.backUp("prod")).code).toBe(0);
  expect(stand.manifest()).toMatchObject({ format: "rollcall-backup-2" });
  await prod.stop();

  await stand.deployment("one");
  const refused = await stand.restore("one");
  expect([refused.code, refused.stderr + refused.stdout]).toEqual([1, expect.stringContaining("--databases 2")]);
  const next = await stand.deployment("next", SECRET, 2);
  const restored = await stand.restore("next");
  expect([restored.code, restored.stderr, next.said]).toEqual([0, expect.any(String), []]);
  expect(await seenBy(next, key, run)).toEqual(before);
  const repaired = await stand.rollcall("deploy", "repair", "--name", "next", "--json");
  expect([repaired.code, JSON.parse(repaired.stdout)]).toMatchObject([0, { checked: 1, restored: 0, next: null }]);
});
