/**
 * The API with a database of its own tenant, and with services that a test writes itself. A service that a test did not
 * write throws, so a route that calls it by mistake gives a 500.
 */
import { env } from "cloudflare:workers";
import { openAuthentication } from "../../../src/accounts/authentication.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { createApp } from "../../../src/kernel/http/app.ts";
import type { ApiDependencies } from "../../../src/kernel/http/operation.ts";
import { type Services, services } from "../../../src/kernel/service/services.ts";
import { SLICE_SERVICES } from "../../../src/slice-services.ts";
import { OPERATIONS } from "../../../src/slices.ts";
import { admit } from "../../accounts/admit.ts";
import { checked } from "./validate-responses.ts";

export interface TestApi {
  readonly app: ReturnType<typeof createApp>;
  readonly scope: Scope;
  readonly token: string;
  readonly reported: unknown[];
  /** Epoch milliseconds; tests move it. */
  readonly clock: { now: number };
  /**
   * A request with the key, unless the test sends another authorization. The reply is checked against the OpenAPI
   * document.
   */
  readonly ask: (path: string, init?: RequestInit) => Promise<Response>;
  readonly post: (path: string, body: unknown, headers?: HeadersInit) => Promise<Response>;
}

/**
 * `slices`: replaces the services that the routes of these slices call. `database`: the number of the D1 database with the
 * rows of the organisation.
 */
export async function openTestApi(
  services: Partial<Services> = {},
  slices: ApiDependencies["slices"] = {},
  database = 0,
): Promise<TestApi> {
  const unique = crypto.randomUUID();
  const scope = { orgId: database === 0 ? `org_${unique}` : `org_${database}_${unique}`, projectId: `pj_${unique}` };
  const token = await admit(scope);
  const clock = { now: 1_792_000_000_000 };
  const reported: unknown[] = [];
  const dependencies: ApiDependencies = {
    services: { ...unwritten(), ...services },
    slices: { ...SLICE_SERVICES, ...slices },
    authentication: openAuthentication,
    now: () => clock.now,
    outlive: (work) => work,
    report: (error) => reported.push(error),
  };
  const app = createApp(dependencies, OPERATIONS);
  const ask = checked(async (path, init = {}) => {
    const headers = new Headers(init.headers);
    if (!headers.has("authorization")) headers.set("authorization", `Bearer ${token}`);
    return await app.request(`http://platform.test${path}`, { ...init, headers }, env);
  });
  const post = (path: string, body: unknown, headers: HeadersInit = {}): Promise<Response> =>
    ask(path, {
      method: "POST",
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers: { "content-type": "application/json", ...Object.fromEntries(new Headers(headers)) },
    });
  return { app, scope, token, reported, clock, ask, post };
}

export const SERVICE_NAMES = Object.keys(services) as readonly (keyof Services)[];

function unwritten(): Services {
  const refuse = (): never => {
    throw new Error("this test wrote no such service");
  };
  return Object.fromEntries(SERVICE_NAMES.map((name) => [name, refuse])) as Record<keyof Services, () => never>;
}
