/** Checks a deployed platform over HTTP, without access to its Cloudflare account. */
import * as z from "zod";
import type { Finding } from "./check-deployment.ts";
import { COMMAND } from "./package-root.ts";
import { jsonOrNull } from "./readyz.ts";

const ANSWERS_WITHIN_MS = 10_000;
/** `info.version` of the OpenAPI document. */
const API_VERSION = "1";

const OpenApi = z.object({ info: z.object({ version: z.string() }) });
const Readiness = z.object({
  checks: z.array(z.object({ name: z.string(), ok: z.boolean(), problem: z.string().nullable() })),
});
const Failure = z.object({ error: z.object({ code: z.string() }) });

/** What to do about a failed check of `/readyz`. */
const FIXES: Readonly<Record<string, string>> = {
  secret: "wrangler secret put ROLLCALL_SECRET, with the secret under which this deployment made its ids",
  database: "wrangler d1 migrations apply with --remote, then deploy this release",
  queues: "deploy with the lines of these bindings from the wrangler.toml of this release",
  bucket: "deploy with the lines of STORE from the wrangler.toml of this release, and wrangler r2 bucket create",
};

/** Findings about the platform at `url`, and about `key` if given. Never rejects because of an answer. */
export async function checkDeployed(url: string, key: string | undefined): Promise<Finding[]> {
  const health = await ask(new URL("/healthz", url));
  if (health.status !== 200) {
    const what = `${url} does not answer like a platform: /healthz ${health.said}`;
    return [{ level: "error", what, fix: "wrangler tail shows the Worker's log of a request" }];
  }
  const found = await Promise.all([checkReady(url), checkVersion(url), checkBootstrap(url), checkKey(url, key)]);
  return found.flat();
}

async function checkReady(url: string): Promise<Finding[]> {
  const { status, body, said } = await ask(new URL("/readyz", url));
  if (status === 200) return [];
  const readiness = Readiness.safeParse(body);
  const failed = readiness.success ? readiness.data.checks.filter(({ ok }) => !ok) : [];
  if (failed.length === 0) {
    const fix = "deploy this release, or read the Worker's log with wrangler tail";
    return [{ level: "error", what: `${url} is not ready: /readyz ${said}`, fix }];
  }
  return failed.map(({ name, problem }) => {
    const what = `${url} is not ready: ${name}: ${problem}`;
    return { level: "error", what, fix: FIXES[name] ?? "read the Worker's log with wrangler tail" };
  });
}

async function checkVersion(url: string): Promise<Finding[]> {
  const { body, said } = await ask(new URL("/openapi.json", url));
  const document = OpenApi.safeParse(body);
  if (document.success && document.data.info.version === API_VERSION) return [];
  const spoken = document.success ? `version ${document.data.info.version}` : `an unknown version (it ${said})`;
  const what = `${url} speaks ${spoken} of the API, and this Rollcall version ${API_VERSION}`;
  return [{ level: "error", what, fix: "deploy this release, or check with the deployed one" }];
}

/** Sends no token, so nothing is created. If the token is not set, the route does not exist. */
async function checkBootstrap(url: string): Promise<Finding[]> {
  const { status, said } = await ask(new URL("/v1/bootstrap", url), {
    method: "POST",
    body: '{"name":"deploy check"}',
  });
  if (status === 404) return [];
  const what = `the bootstrap route is still open: /v1/bootstrap ${said}`;
  return [{ level: "warning", what, fix: "wrangler secret delete ROLLCALL_BOOTSTRAP_TOKEN, once you have a key" }];
}

async function checkKey(url: string, key: string | undefined): Promise<Finding[]> {
  if (key === undefined || key === "") {
    const what = "no key was checked";
    return [{ level: "warning", what, fix: `ROLLCALL_API_KEY=rk_… ${COMMAND} deploy check --url …` }];
  }
  // Other characters are not allowed in a header, and the error would show the key.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    const what = "ROLLCALL_API_KEY is not a valid key: does it contain spaces or line breaks?";
    return [{ level: "error", what, fix: "set it to the key only" }];
  }
  const { status, said } = await ask(new URL("/v1/whoami", url), {
    headers: { authorization: `Bearer ${key}` },
  });
  if (status === 200) return [];
  const what = `the key in ROLLCALL_API_KEY is not accepted: /v1/whoami ${said}`;
  return [{ level: "error", what, fix: `create another with ${COMMAND} key create` }];
}

interface Answer {
  /** 0: no answer. */
  readonly status: number;
  /** The parsed JSON; null if it is not JSON. */
  readonly body: unknown;
  /** The result in words, such as "says 401 unauthorized". */
  readonly said: string;
}

async function ask(url: URL, init: RequestInit = {}): Promise<Answer> {
  try {
    const signal = AbortSignal.timeout(ANSWERS_WITHIN_MS);
    const reply = await fetch(url, { ...init, signal, redirect: "manual" });
    const body = jsonOrNull(await reply.text());
    const failure = Failure.safeParse(body);
    const code = failure.success ? ` ${failure.data.error.code}` : "";
    return { status: reply.status, body, said: `says ${reply.status}${code}` };
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
    const why = error.cause instanceof Error ? error.cause.message : error.message;
    return { status: 0, body: null, said: `got no answer: ${why}` };
  }
}
