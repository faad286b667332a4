/** Secrets of environments: a value can be written and is never shown. */
import { SecretList, SecretPatch, SecretRequest, SecretView } from "../../contract/endpoint.ts";
import { EXAMPLE } from "../../contract/primitives.ts";
import { databaseOf } from "../db/database.ts";
import { deleteSecret, findSecret, listSecrets, secretViewOf } from "../db/secrets.ts";
import { resourceOperations } from "./resource.ts";

const WITHOUT_VALUE = { description: "The secret, without its value" };

export const secretOperations = resourceOperations({
  noun: "secret",
  path: "/v1/secrets",
  permissions: { read: "secrets:read", write: "secrets:write" },
  schema: SecretView,
  example: EXAMPLE.secret,
  find: ({ env, var: { scope } }, nameOrId) => findSecret(databaseOf(env), scope, nameOrId),
  show: (_, secrets) => secrets.map(secretViewOf),
  create: {
    summary: "Create a secret for environments that need secret:NAME",
    body: { schema: SecretRequest, example: { name: "SEARCH_KEY", value: "ab12cd34ef56" } },
    reply: WITHOUT_VALUE,
    run: ({ env, var: { scope, services } }, request, options) => services.createSecret(env, scope, request, options),
  },
  list: {
    summary: "List secrets by name",
    reply: { description: "One page of secrets, without their values", schema: SecretList },
    run: ({ env, var: { scope } }, page) => listSecrets(databaseOf(env), scope, page),
  },
  get: { summary: "Read a secret's metadata, by id or name", reply: WITHOUT_VALUE },
  update: {
    summary: "Change the value of a secret, by id or name",
    description: "Rollouts in flight use it within 5 seconds.",
    body: { schema: SecretPatch, example: { value: "gh78ij90kl12" } },
    reply: WITHOUT_VALUE,
    run: ({ env, var: { scope, services, now } }, secret, { value }) =>
      services.changeSecret(env, scope, secret, value, now()),
  },
  delete: {
    summary: "Delete a secret, by id or name",
    description: "Within 5 seconds, a rollout that asks for it fails: environment.",
    run: async ({ env, var: { scope } }, { id }) => ({
      ok: true,
      value: await deleteSecret(databaseOf(env), scope, id),
    }),
  },
});
