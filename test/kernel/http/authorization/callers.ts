/** All kinds of callers: without a key, with an expired one, with each scope, role and token. */
import { env } from "cloudflare:workers";
import { PERMISSIONS, type Permission, ROLES } from "../../../../src/contract/identity.ts";
import { mintToken } from "../../../../src/core/ids.ts";
import { minting } from "../../../../src/kernel/kit/secrets.ts";
import { admit } from "../../../accounts/admit.ts";
import { cookieOf } from "./page-things.ts";
import { MAY } from "./permissions.ts";
import { joined, type Project } from "./resources.ts";

export interface Asker {
  readonly name: string;
  /** Null: sends none. */
  readonly token: string | null;
  /** The cookie of a browser, which sends no key. */
  readonly cookie?: string;
  /** Null: the caller is unknown. */
  readonly may: readonly Permission[] | null;
  /** The project that the key is for; null: any project of the organisation. */
  readonly bound: Project | null;
  /** The project that it always names in the header `Rollcall-Project`. */
  readonly names?: Project;
  /** The run whose trainer it is. */
  readonly trains?: string;
}

/** Callers of the first project; the second is in the same organisation, the third in another. */
export async function callersOf(own: Project, beside: Project): Promise<Asker[]> {
  const { scope } = own;
  const nobody = { may: null, bound: null };
  const key = (changes: Parameters<typeof admit>[1]) => admit(scope, changes);
  const everything = { scopes: ["admin"] } as const;
  return [
    { name: "no key", token: null, ...nobody },
    { name: "a text that is no key", token: "guess", ...nobody },
    { name: "a key that was never stored", token: mintToken("rk", minting(env, 0)), ...nobody },
    { name: "an expired key", token: await key({ ...everything, expires_at: 1 }), ...nobody },
    { name: "a revoked key", token: await key({ ...everything, revoked_at: 1 }), ...nobody },
    { name: "a key of somebody who left", token: await key({ ...everything, person_id: "per_gone" }), ...nobody },
    ...(await Promise.all(
      PERMISSIONS.map(async (one) => {
        const token = await key({ scopes: [one] });
        return { name: `a key for ${one}`, token, may: [one], bound: own };
      }),
    )),
    ...(await Promise.all(
      ROLES.map(async (role) => {
        const token = await key({ ...everything, person_id: await joined(scope.orgId, role) });
        return { name: `a person: ${role}`, token, may: MAY[role], bound: own };
      }),
    )),
    { name: "the run's trainer", token: own.things.token, may: [], bound: own, trains: own.things.training },
    {
      name: "a trainer of the other project",
      token: beside.things.token,
      may: [],
      bound: beside,
      trains: beside.things.training,
    },
    ...(await wholeOrganization(key, own, beside)),
    ...(await browsers(key, own, beside)),
  ];
}

/** Sessions are looked up in another way than keys; the result is the same for every key. */
async function browsers(
  key: (changes: Parameters<typeof admit>[1]) => Promise<string>,
  own: Project,
  beside: Project,
): Promise<Asker[]> {
  const [writer, admin] = [await key({ scopes: ["runs:write"] }), await key({ scopes: ["admin"], project_id: null })];
  const viewer = await key({ scopes: ["admin"], person_id: await joined(own.scope.orgId, "viewer") });
  const revoked = await key({ scopes: ["admin"], revoked_at: 1 });
  const nobody = { may: null, bound: null };
  const asked: readonly Omit<Asker, "token">[] = [
    { name: "a session that is over", cookie: await cookieOf(admin, { expires_at: 2 }), ...nobody },
    { name: "a session of a revoked key", cookie: await cookieOf(revoked), ...nobody },
    { name: "a session of a key for runs:write", cookie: await cookieOf(writer), may: ["runs:write"], bound: own },
    { name: "a session of a viewer", cookie: await cookieOf(viewer), may: MAY.viewer, bound: own },
    {
      name: "a session of a key of the organisation, naming the other project",
      ...{ cookie: await cookieOf(admin), may: ["admin"], bound: null, names: beside },
    },
  ];
  return asked.map((one) => ({ ...one, token: null }));
}

async function wholeOrganization(
  key: (changes: Parameters<typeof admit>[1]) => Promise<string>,
  own: Project,
  beside: Project,
): Promise<Asker[]> {
  const whole = { may: ["admin"], bound: null } as const;
  const token = await key({ scopes: ["admin"], project_id: null });
  const person_id = await joined(own.scope.orgId, "owner");
  const owners = await key({ scopes: ["admin"], project_id: null, person_id });
  return [
    { name: "a key of the organisation", token, ...whole },
    { name: "an owner, for every project", token: owners, ...whole },
    { name: "a key of the organisation, naming the project", token, ...whole, names: own },
    { name: "a key of the organisation, naming the other project", token, ...whole, names: beside },
  ];
}
