/** Whom an invitation makes a member: only the person who accepts it. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { callerOfAccess } from "../../src/accounts/access-identity.ts";
import type { Role } from "../../src/contract/identity.ts";
import { openBrowser } from "../kernel/http/browser.ts";
import { overtaken } from "../kernel/http/overtaken.ts";
import { openTenant, type Tenant } from "./tenant.ts";

const HTTPS = "https://platform.test";
const emailOf = (name: string) => `${name}-${crypto.randomUUID()}@example.com`;

async function tokenFor({ call, admin }: Tenant, email: string, role: Role = "viewer"): Promise<string> {
  const { status, body } = await call(admin, "POST /v1/invitations", { email, role });
  expect(status).toBe(201);
  return body.token;
}

/** Accepts with only the link's token, or also with a key. */
async function accepted(tenant: Tenant, token: string, key = token) {
  const { status, body } = await tenant.call(key, "POST /v1/invitations/accept", { token });
  expect(status).toBe(201);
  return { ...body.person, key: body.key.key };
}

const peopleOf = async ({ call, admin }: Tenant) => (await call(admin, "GET /v1/people")).body.data;

/** A deployment behind Access, and the header with which Access confirms an address. */
async function behindAccess({ clock }: Tenant) {
  const team = `${env.ACCESS_URL}/${crypto.randomUUID()}`;
  const changes = { ACCESS_TEAM_URL: team, ACCESS_AUDIENCE: "app" };
  const header = async (email: string) => {
    const iat = clock.now / 1000;
    const claims = { iss: team, aud: ["app"], email, iat, exp: iat + 600 };
    const reply = await fetch(`${team}/sign`, { method: "POST", body: JSON.stringify({ claims }) });
    return { "cf-access-jwt-assertion": String(await reply.json()) };
  };
  const ask = async (email: string) => {
    const request = new Request(`${HTTPS}/v1/runs`, { headers: await header(email) });
    return await callerOfAccess({ ...env, ...changes }, request, clock.now);
  };
  return { changes, header, ask };
}

test("the maker of an invitation to another member's address becomes a new person by it, not that member", async () => {
  const tenant = await openTenant();
  const email = emailOf("bob");
  const bob = await accepted(tenant, await tokenFor(tenant, email, "owner"));
  const link = await tokenFor(tenant, email, "owner");
  for (const key of [link, tenant.admin]) {
    const taken = await accepted(tenant, key === link ? link : await tokenFor(tenant, email, "owner"), key);
    expect(taken).toMatchObject({ email, email_proven: false });
    expect(taken.id).not.toBe(bob.id);
  }
  const keys = env.DB.prepare("select count(*) n from api_keys where person_id = ?");
  expect(await keys.bind(bob.id).first("n")).toBe(1);
});

test("an invitation that somebody else accepts makes nobody a member of another organisation", async () => {
  const [home, other] = [await openTenant(), await openTenant()];
  const email = emailOf("bob");
  const bob = await accepted(home, await tokenFor(home, email));
  const taken = await accepted(other, await tokenFor(other, email, "owner"));
  expect(taken.id).not.toBe(bob.id);
  const of = env.DB.prepare("select org_id from members where person_id = ?").bind(bob.id);
  expect((await of.all()).results).toEqual([{ org_id: home.scope.orgId }]);
});

test("a person's own key or session makes that person the member if the invitation is to their address", async () => {
  const [home, other] = [await openTenant(), await openTenant()];
  const email = emailOf("bob");
  const bob = await accepted(home, await tokenFor(home, email));
  expect((await accepted(other, await tokenFor(other, email.toUpperCase()), bob.key)).id).toBe(bob.id);
  const third = await openTenant();
  const browser = openBrowser(home, HTTPS);
  const { code } = (await home.call(bob.key, "POST /v1/sign-in-codes")).body;
  expect((await browser.ask("POST /v1/session", { code })).status).toBe(201);
  const body = { token: await tokenFor(third, email) };
  const foreign = await browser.ask("POST /v1/invitations/accept", body, { origin: "https://elsewhere.test" });
  expect(foreign.status).toBe(403);
  const reply = await browser.ask("POST /v1/invitations/accept", body);
  expect([reply.status, (await reply.json<{ person: { id: string } }>()).person.id]).toEqual([201, bob.id]);
});

test("with another person's key or an expired one, the person who accepts is new", async () => {
  const [home, other] = [await openTenant(), await openTenant()];
  const email = emailOf("bob");
  const bob = await accepted(home, await tokenFor(home, email));
  const eve = await accepted(home, await tokenFor(home, emailOf("eve"), "owner"));
  const known = [bob.id, eve.id];
  expect(known).not.toContain((await accepted(other, await tokenFor(other, email), eve.key)).id);
  expect((await home.call(home.admin, `DELETE /v1/people/${bob.id}`)).status).toBe(200);
  expect(known).not.toContain((await accepted(other, await tokenFor(other, email), bob.key)).id);
  expect((await peopleOf(other)).length).toBe(2);
});

test("a session that is over makes nobody a member as its person", async () => {
  const [home, other] = [await openTenant(), await openTenant()];
  const email = emailOf("bob");
  const bob = await accepted(home, await tokenFor(home, email));
  const browser = openBrowser(home, HTTPS);
  const { code } = (await home.call(bob.key, "POST /v1/sign-in-codes")).body;
  expect((await browser.ask("POST /v1/session", { code })).status).toBe(201);
  const join = async () => {
    const reply = await browser.ask("POST /v1/invitations/accept", { token: await tokenFor(other, email) });
    expect(reply.status).toBe(201);
    return (await reply.json<{ person: { id: string } }>()).person.id;
  };
  home.clock.now += 12 * 3600_000 - 1;
  expect(await join()).toBe(bob.id);
  home.clock.now += 1;
  expect(await join()).not.toBe(bob.id);
});

test("a person who accepts behind Access with their own address is the same person in every organisation", async () => {
  const [one, other] = [await openTenant(), await openTenant()];
  const email = emailOf("bob");
  const { changes, header, ask } = await behindAccess(one);
  const join = async (tenant: Tenant, as = email) => {
    const body = { token: await tokenFor(tenant, email) };
    const browser = openBrowser(tenant, HTTPS, changes);
    const reply = await browser.ask("POST /v1/invitations/accept", body, await header(as));
    expect(reply.status).toBe(201);
    return (await reply.json<{ person: { id: string; email_proven: boolean } }>()).person;
  };
  const bob = await join(one);
  expect(bob.email_proven).toBe(true);
  expect(await join(one, email.toUpperCase())).toEqual(bob);
  expect(await ask(email)).toMatchObject({ who: bob.id, orgId: one.scope.orgId });
  // Made by another person, with the same address.
  const planted = await join(other, emailOf("eve"));
  expect([planted.id === bob.id, planted.email_proven]).toEqual([false, false]);
  expect(await ask(email)).toMatchObject({ who: bob.id, orgId: one.scope.orgId });
  expect((await join(other)).id).toBe(bob.id);
  expect(await ask(email)).toBe("several");
});

test("Access signs nobody in as a person whom somebody else created with an invitation to their address", async () => {
  const tenant = await openTenant();
  const email = emailOf("bob");
  const { ask } = await behindAccess(tenant);
  await accepted(tenant, await tokenFor(tenant, email, "owner"));
  expect(await ask(email)).toBeNull();
});

test("two people who accept at once behind Access, with invitations to one address, are one person", async () => {
  const tenants = [await openTenant(), await openTenant()];
  const [first] = tenants;
  if (first === undefined) throw new Error("no tenant");
  const email = emailOf("bob");
  const { changes, header } = await behindAccess(first);
  const proof = await header(email);
  const both = await Promise.all(
    tenants.map(async (tenant) => {
      const body = { token: await tokenFor(tenant, email) };
      return (await openBrowser(tenant, HTTPS, changes).ask("POST /v1/invitations/accept", body, proof)).status;
    }),
  );
  expect(both).toContain(201);
  const rows = env.DB.prepare("select count(*) n from people where email = ? and proven_at is not null").bind(email);
  expect(await rows.first("n")).toBe(1);
});

test("a person who accepts while the address is proved for somebody else is asked to try again, and is then the same person", async () => {
  const [one, other] = [await openTenant(), await openTenant()];
  const email = emailOf("bob");
  const { changes, header } = await behindAccess(one);
  const accept = async (tenant: Tenant, token: string, DB = env.DB) => {
    const browser = openBrowser(tenant, HTTPS, { ...changes, DB });
    return await browser.ask("POST /v1/invitations/accept", { token }, await header(email));
  };
  const tokens = [await tokenFor(one, email), await tokenFor(other, email)] as const;
  const first: Response[] = [];
  const race = async () => void first.push(await accept(one, tokens[0]));
  // It overtakes the second request once that one has found that nobody has proved the address.
  const late = await accept(
    other,
    tokens[1],
    overtaken(env.DB, /from "people".*"proven_at" is not null/, race, "after"),
  );
  expect([first[0]?.status, late.status]).toEqual([201, 409]);
  expect(await late.json()).toMatchObject({ error: { message: expect.stringContaining("try again") } });
  expect((await peopleOf(other)).length).toBe(0);
  const again = await accept(other, tokens[1]);
  const [bob, same] = [await first[0]?.json<{ person: object }>(), await again.json<{ person: { id: string } }>()];
  expect([again.status, bob?.person]).toMatchObject([201, { id: same.person.id }]);
});

test("addresses are ASCII and case-insensitive", async () => {
  const { call, admin } = await openTenant();
  for (const email of ["\u212aate@example.com", "kate@ex\u00e4mple.com"]) {
    const { status, body } = await call(admin, "POST /v1/invitations", { email, role: "viewer" });
    expect([status, body.error.param]).toEqual([400, "email"]);
  }
  const { body } = await call(admin, "POST /v1/invitations", { email: "KATE@Example.COM", role: "viewer" });
  expect(body.email).toBe("kate@example.com");
});
