/** Links with which anybody can read a run's report. */
import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { expect, test } from "vitest";
import { mintRunId, mintToken } from "../../src/core/ids.ts";
import { endpoints, runs } from "../../src/kernel/db/schema.ts";
import { minting, sha256Hex } from "../../src/kernel/kit/secrets.ts";
import { openTenant, type Tenant } from "../accounts/tenant.ts";
import { RUN } from "../kernel/http/examples.ts";
import { endpointRow, runRow } from "../kernel/http/run-rows.ts";

const SHARED = "/v1/shared-report";
const DAY = 24 * 3600_000;
const JUDGED = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, calls: 1 };

/** A run of the tenant that has ended, on an endpoint with a key. */
async function endedRun({ scope, clock }: Tenant): Promise<string> {
  const owner = { org_id: scope.orgId, project_id: scope.projectId };
  const endpoint = endpointRow({ id: `ep_${crypto.randomUUID()}`, api_key_last4: "9f2c" });
  const id = mintRunId(minting(env, clock.now));
  const report = {
    ...RUN.report,
    counted_micros: 7,
    lost_reservations: { calls: 1, micros: 3 },
    usage: {
      ...RUN.report.usage,
      ...{ charged_micros: 8, cost_micros: 9, lost: { calls: 1, micros: 10 } },
      judge: { ...JUDGED, cost_micros: 11 },
    },
  };
  const run = runRow(endpoint, {
    ...{ id, name: "shown", status: "completed", report, counts: RUN.counts, metadata: { hidden: "pair" } },
    ...{ created_at: clock.now, finished_at: clock.now },
  });
  const d1 = drizzle(env.DB);
  await d1.batch([
    d1.insert(endpoints).values({ ...endpoint, ...owner }),
    d1.insert(runs).values({ ...run, ...owner }),
  ]);
  return id;
}

const tokenOf = (url: string) => new URL(url).hash.slice(1);
const shown = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test("a link shows anybody the report, but no prompts, addresses, keys or metadata", async () => {
  const tenant = await openTenant();
  const { call, token, app, clock } = tenant;
  const id = await endedRun(tenant);
  const { status, body } = await call(token, `POST /v1/runs/${id}/report-links`, {});
  expect([status, body.expires_at]).toEqual([201, (clock.now + 7 * DAY) / 1000]);
  expect(body.url).toMatch(/^http:\/\/platform\.test\/shared#rkr_\w+$/);
  const read = await app.request(SHARED, shown(tokenOf(body.url)), env);
  const text = await read.text();
  const report = JSON.parse(text);
  expect(read.status, text).toBe(200);
  expect(report).toMatchObject({ name: "shown", status: "completed", counts: RUN.counts, expires_at: body.expires_at });
  expect(report.report.reward).toEqual(RUN.report.reward);
  expect(Object.keys(report).sort()).toEqual([
    "counts",
    "created_at",
    "environment",
    "expires_at",
    "finished_at",
    "histogram",
    "kind",
    "model",
    "name",
    "object",
    "report",
    "status",
  ]);
  expect(text).not.toMatch(
    /9f2c|hidden|base_url|https?:|charged_micros|counted_micros|lost_reservations|micros":\d|ep_|key_/,
  );
  expect(report.report.usage).toMatchObject({
    judge: { ...JUDGED, cost_micros: null },
    lost: { calls: 1, micros: null },
  });
  const [stored] = (await env.DB.prepare("select * from report_links where run_id = ?").bind(id).all()).results;
  expect(stored).toMatchObject({ hash: sha256Hex(tokenOf(body.url)) });
  const listed = (await call(token, `GET /v1/runs/${id}/report-links`)).body.data;
  expect(listed).toEqual([{ ...body, url: undefined }].map(({ url: _, ...link }) => link));
});

test("a link's token is sent as a bearer token and is in no address; a key or a cookie does not work", async () => {
  const tenant = await openTenant();
  const { call, token, app } = tenant;
  const { url } = (await call(token, `POST /v1/runs/${await endedRun(tenant)}/report-links`, {})).body;
  const proof = tokenOf(url);
  const asked = async (path: string, init: RequestInit) => {
    const reply = await app.request(path, init, env);
    return [reply.status, reply.headers.get("www-authenticate"), reply.headers.get("referrer-policy")];
  };
  expect(await asked(SHARED, shown(proof))).toEqual([200, null, "no-referrer"]);
  const refused = [401, "Bearer", "no-referrer"];
  expect(await asked(SHARED, {})).toEqual(refused);
  expect(await asked(SHARED, shown(token))).toEqual(refused);
  expect(await asked(SHARED, { headers: { cookie: `__Host-rollcall=${proof}` } })).toEqual(refused);
  expect(await asked(`${SHARED}?token=${proof}`, {})).toEqual(refused);
  expect((await asked(`${SHARED}s/${proof}`, {}))[0]).toBe(404);
});

test("a link ends at its expiry, when it is revoked, and with its run", async () => {
  const tenant = await openTenant();
  const { call, token, app, clock } = tenant;
  const id = await endedRun(tenant);
  const newLink = async (body: object = {}) => (await call(token, `POST /v1/runs/${id}/report-links`, body)).body;
  const [short, taken, last] = [await newLink({ expires_in_s: 60 }), await newLink(), await newLink()];
  const read = async ({ url }: { url: string }) => (await app.request(SHARED, shown(tokenOf(url)), env)).status;
  expect([await read(short), await read(taken), await read(last)]).toEqual([200, 200, 200]);
  expect((await call(token, `DELETE /v1/report-links/${taken.id}`)).status).toBe(200);
  expect((await call(token, `DELETE /v1/report-links/${taken.id}`)).status).toBe(404);
  clock.now += 59_999;
  expect([await read(short), await read(taken), await read(last)]).toEqual([200, 401, 200]);
  // What was just read ends with the link all the same.
  clock.now += 1;
  expect([await read(short), await read(taken), await read(last)]).toEqual([401, 401, 200]);
  await drizzle(env.DB).update(runs).set({ deleted_at: clock.now });
  clock.now += 60_000;
  expect(await read(last)).toBe(401);
});

test("a revoked link is looked up once in two seconds, however often it is used", async () => {
  const tenant = await openTenant();
  const { call, token, app, clock } = tenant;
  const { id, url } = (await call(token, `POST /v1/runs/${await endedRun(tenant)}/report-links`, {})).body;
  await call(token, `DELETE /v1/report-links/${id}`);
  let looks = 0;
  const prepare = (query: string) => {
    looks += 1;
    return env.DB.prepare(query);
  };
  const DB = new Proxy(env.DB, { get: (target, name) => (name === "prepare" ? prepare : Reflect.get(target, name)) });
  const limit = async () => ({ success: true });
  const read = async () =>
    (await app.request(SHARED, shown(tokenOf(url)), { ...env, DB, WRONG_KEYS: { limit } })).status;
  expect([await read(), await read(), await read(), looks]).toEqual([401, 401, 401, 1]);
  clock.now += 2000;
  expect([await read(), looks]).toEqual([401, 2]);
});

test("a repeat creates no second link and shows none, and a run has at most a hundred", async () => {
  const tenant = await openTenant();
  const { call, token } = tenant;
  const id = await endedRun(tenant);
  const again = () => call(token, `POST /v1/runs/${id}/report-links`, {}, { "idempotency-key": "once" });
  const first = (await again()).body;
  expect((await again()).body).toEqual({ ...first, url: null });
  expect((await call(token, `POST /v1/runs/${id}/report-links`, { expires_in_s: 91 * 86_400 })).status).toBe(400);
  const row =
    "insert into report_links select id || ?1, org_id, project_id, run_id, hash || ?1, created_by, created_at, expires_at";
  const copy = env.DB.prepare(`${row} from report_links where id = ?2`);
  await env.DB.batch(Array.from({ length: 99 }, (_, n) => copy.bind(`-${n}`, first.id)));
  expect((await call(token, `POST /v1/runs/${id}/report-links`, {})).status).toBe(409);
});

test("guesses at links are counted by address", async () => {
  const { app } = await openTenant();
  const address = crypto.randomUUID();
  const counted: string[] = [];
  const limit = async ({ key }: RateLimitOptions) => {
    counted.push(key);
    return { success: counted.length < 3 };
  };
  const ask = async (token: string) => {
    const headers = { ...shown(token).headers, "cf-connecting-ip": address };
    return (await app.request(SHARED, { headers }, { ...env, WRONG_KEYS: { limit } })).status;
  };
  const unknown = () => mintToken("rkr", minting(env, 0));
  expect([await ask("guess"), await ask(unknown()), await ask(unknown())]).toEqual([401, 401, 429]);
  expect(counted).toEqual([address, address, address]);
});
