/** A platform that is killed while a browser signs in, before and after each call to its database. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { sha256Hex } from "../../src/kernel/kit/secrets.ts";
import { cutOffAt } from "../kernel/cut-off.ts";
import { openBrowser } from "../kernel/http/browser.ts";
import { openTenant, type Tenant } from "./tenant.ts";

const HTTPS = "https://platform.test";
const MOST_CALLS = 12;
const CUTS = Array.from({ length: MOST_CALLS }, (_, call) => call).flatMap((call) =>
  (["before", "after"] as const).map((at) => ({ call, at })),
);

const codeOf = async ({ call, admin }: Tenant, key = admin): Promise<string> =>
  (await call(key, "POST /v1/sign-in-codes")).body.code;

async function countOf(query: string, ...values: readonly string[]): Promise<number> {
  const [row] = (
    await env.DB.prepare(query)
      .bind(...values)
      .all<{ n: number }>()
  ).results;
  return row?.n ?? 0;
}
const sessionsOf = (org: string) => countOf("select count(*) as n from web_sessions where org_id = ?", org);
const codesOf = (org: string) => countOf("select count(*) as n from sign_in_codes where org_id = ?", org);

const signIn = async (tenant: Tenant, body: object) => {
  const browser = openBrowser(tenant, HTTPS);
  return [(await browser.ask("POST /v1/session", body)).status, (await browser.ask("GET /v1/whoami")).status];
};

/** Signs in on a platform that is killed. Returns the status of the answer, or "killed". */
async function cutOff(tenant: Tenant, body: object, { call, at }: (typeof CUTS)[number]): Promise<number | "killed"> {
  const {
    env: { DB },
    reached: killed,
  } = cutOffAt(call, at);
  const reply = openBrowser(tenant, HTTPS, { DB }).ask("POST /v1/session", body);
  return await Promise.race([reply.then(({ status }) => status), killed.then(() => "killed" as const)]);
}

test("a code is used and its session created together or not at all, and a sign-in can be repeated", async () => {
  const met: (number | "killed")[] = [];
  for (const cut of CUTS) {
    const tenant = await openTenant();
    const { orgId } = tenant.scope;
    const code = await codeOf(tenant);
    met.push(await cutOff(tenant, { code }, cut));
    const begun = await sessionsOf(orgId);
    const left = await countOf("select count(*) as n from sign_in_codes where hash = ?", sha256Hex(code));
    expect([cut, begun + left]).toEqual([cut, 1]);
    const [again, another] = [await signIn(tenant, { code }), await signIn(tenant, { code: await codeOf(tenant) })];
    expect([cut, again, another]).toEqual([cut, left === 1 ? [201, 200] : [401, 401], [201, 200]]);
    // A session whose cookie was lost is listed, can be ended, and expires like any other.
    const listed = (await tenant.call(tenant.admin, "GET /v1/sessions")).body.data;
    expect([cut, listed.length]).toEqual([cut, begun + left + 1]);
    tenant.clock.now += 12 * 3600_000;
    expect(await signIn(tenant, { code: await codeOf(tenant) })).toEqual([201, 200]);
    expect([cut, await sessionsOf(orgId), await codesOf(orgId)]).toEqual([cut, 1, 0]);
  }
  const calls = met.indexOf(201) / 2;
  expect(calls).toBeGreaterThan(2);
  expect(met).toEqual(met.map((_, at) => (at < 2 * calls ? "killed" : 201)));
});

test("an interrupted sign-in with a key can be repeated, and leaves only its session", async () => {
  const met: (number | "killed")[] = [];
  for (const cut of CUTS) {
    const tenant = await openTenant();
    met.push(await cutOff(tenant, { key: tenant.admin }, cut));
    expect(await sessionsOf(tenant.scope.orgId)).toBeLessThan(2);
    expect(await signIn(tenant, { key: tenant.admin })).toEqual([201, 200]);
    tenant.clock.now += 12 * 3600_000;
    expect(await signIn(tenant, { key: tenant.admin })).toEqual([201, 200]);
    expect([cut, await sessionsOf(tenant.scope.orgId)]).toEqual([cut, 1]);
  }
  expect(met.indexOf(201)).toBeGreaterThan(4);
});

test("a code whose creation was interrupted does not work, and is deleted with the next one", async () => {
  for (const at of ["before", "after"] as const) {
    const tenant = await openTenant();
    const { orgId } = tenant.scope;
    const headers = { authorization: `Bearer ${tenant.admin}` };
    for (let call = 0, over = false; !over && call < MOST_CALLS; call += 1) {
      const {
        env: { DB },
        reached: killed,
      } = cutOffAt(call, at);
      const made = openBrowser(tenant, HTTPS, { DB }).ask("POST /v1/sign-in-codes", undefined, headers);
      over = await Promise.race([made.then(() => true), killed.then(() => false)]);
      tenant.clock.now += 5 * 60_000;
      const code = await codeOf(tenant);
      expect([at, call, await codesOf(orgId)]).toEqual([at, call, 1]);
      expect(await signIn(tenant, { code })).toEqual([201, 200]);
    }
  }
});
