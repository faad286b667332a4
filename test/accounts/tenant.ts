/** An organisation for one test, with its real services, called with keys of every kind. */
import { env } from "cloudflare:workers";
import type { ApiKeyRow } from "../../src/accounts/tables.ts";
import { services } from "../../src/kernel/service/services.ts";
import { openTestApi, type TestApi } from "../kernel/http/test-api.ts";
import { admit } from "./admit.ts";

export interface Tenant extends TestApi {
  /** A key of the whole organisation with all scopes. */
  readonly admin: string;
  /** Creates another key of the organisation. */
  readonly keyWith: (changes: Partial<ApiKeyRow>) => Promise<string>;
  /** The reply to a request with that key, with its parsed body. */
  readonly call: (key: string, route: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>;
}

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever the test says of it
  readonly body: any;
  readonly headers: Headers;
}

/** `database`: the number of the D1 database with its rows. */
export async function openTenant(database = 0): Promise<Tenant> {
  const api = await openTestApi(services, {}, database);
  const { scope } = api;
  const keyWith = (changes: Partial<ApiKeyRow>) => admit(scope, changes);
  const call: Tenant["call"] = async (key, route, body, headers = {}) => {
    const [method = "GET", path = ""] = route.split(" ");
    const reply = await api.ask(path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: reply.status, body: await reply.json(), headers: reply.headers };
  };
  return { ...api, admin: await keyWith({ project_id: null }), keyWith, call };
}

/** The stored row of a key. */
export function storedKey(id: string): Promise<ApiKeyRow | null> {
  return env.DB.prepare("select * from api_keys where id = ?").bind(id).first<ApiKeyRow>();
}
