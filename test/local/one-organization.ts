/** Replaces accounts: a local platform's only organisation, in which any key may do everything. */

import { DEFAULT_LIMITS } from "../../src/contract/identity.ts";
import { bearerOf, unauthorized } from "../../src/kernel/http/bearer.ts";
import type { Authentication } from "../../src/kernel/http/operation.ts";
import { type AccountHooks, registerAccounts } from "../../src/kernel/kit/account-hooks.ts";
import { readTokenKind } from "../../src/kernel/kit/secrets.ts";

function fail(): never {
  throw new Error("no organisation is deleted here");
}

const hooks: AccountHooks = {
  settingsOf: async () => ({ limits: DEFAULT_LIMITS, billing: "off", allowed_hosts: null, open: true }),
  projectId: ({ DB }) => DB.prepare("select id from projects").first<string>("id"),
  hasPayer: async () => true,
  whoStillMay: async (_env, _scope, who) => who,
  ownersOf: async () => [],
  revokeKeys: fail,
  operatorKeys: fail,
  countOwnPeople: fail,
  deleteOwnPeople: fail,
  beginChange: async () => 1,
  endChange: async () => undefined,
  settingsVersion: async () => null,
  settingsChanged: async () => undefined,
};

registerAccounts(hooks);

/** Caches and counts nothing. */
export function openOneOrganization(): Authentication {
  return {
    isIdentified: ({ req }) => req.header("authorization") !== undefined,
    callerOf: async (context) => {
      const { env } = context;
      if (readTokenKind(env, bearerOf(context, "key")) !== "rk") throw unauthorized("no such key");
      const orgId = await env.DB.prepare("select id from organizations").first<string>("id");
      if (orgId === null) throw new Error("the boot makes an organisation");
      const perMinute = { own: null, organization: null };
      return {
        orgId,
        projectId: null,
        permissions: ["admin"],
        who: "key_one",
        runId: null,
        expiresAt: null,
        perMinute,
      };
    },
    count: async () => undefined,
    projectId: hooks.projectId,
  };
}
