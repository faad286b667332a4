/** Hosts that an organisation allows: other hosts are neither stored nor called. */
import { env } from "cloudflare:workers";
import { beforeEach, expect, test, vi } from "vitest";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { allowedHosts, wayOut } from "../../../src/kernel/kit/address.ts";
import { guardedFetch } from "../../../src/kernel/kit/guarded-fetch.ts";
import { admit } from "../../accounts/admit.ts";
import { openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const { hostname } = new URL(env.MODEL_URL);

let api: TestApi;
/** Of a key of the whole organisation. */
let authorization: string;
beforeEach(async () => {
  api = await openPlatform();
  authorization = `Bearer ${await admit(api.scope, { project_id: null })}`;
});

async function allow(hosts: readonly string[] | null): Promise<void> {
  const headers = { authorization, "content-type": "application/json" };
  const body = JSON.stringify({ allowed_hosts: hosts });
  expect((await api.ask("/v1/organization", { method: "PATCH", headers, body })).status).toBe(200);
}

const answered = async (reply: Response) => ({
  status: reply.status,
  ...(await reply.json<{ error?: { code: string; param: string } }>()).error,
});

test("an endpoint at another host is refused when it is created, moved, or given in a run, naming the field", async () => {
  await allow(["models.example"]);
  const endpoint = { base_url: env.MODEL_URL };
  const eval_ = { environment: "gsm8k", dataset: questions(1), model: script(RIGHT) };
  const refused = { status: 400, code: "url_not_allowed" };
  const asked = [
    ["/v1/endpoints", { name: "there", ...endpoint }, "base_url"],
    ["/v1/runs", { ...eval_, endpoint }, "endpoint.base_url"],
    ["/v1/runs", { ...eval_, endpoint: "kept" }, "endpoint"],
  ] as const;
  const kept = { name: "kept", base_url: "https://models.example/v1", probe: false };
  expect((await api.post("/v1/endpoints", kept)).status).toBe(201);
  const move = () =>
    api.ask("/v1/endpoints/kept", {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(endpoint),
    });
  expect(await answered(await move())).toMatchObject({ ...refused, param: "base_url" });
  await env.DB.prepare("update endpoints set base_url = ? where name = 'kept' and org_id = ?")
    .bind(env.MODEL_URL, api.scope.orgId)
    .run();
  for (const [path, body, param] of asked) {
    expect(await answered(await api.post(path, body))).toMatchObject({ ...refused, param });
  }
});

test("a changed list applies to the calls of active runs, and is read once while it does not change", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    // A separate database object: objects of other files share the worker and read theirs meanwhile.
    const prepare = vi.fn((text: string) => env.DB.prepare(text));
    const reads = () => prepare.mock.calls.filter(([text]) => text.includes('"allowed_hosts"')).length;
    const counted = { ...env, DB: Object.assign(Object.create(databaseOf(env)), { prepare }) };
    const means = { hosts: () => allowedHosts(counted, api.scope), now: () => 0, secret: () => "" };
    const model = script(RIGHT);
    const call = () =>
      guardedFetch(env, means)(`${env.MODEL_URL}/chat/completions`, {
        method: "POST",
        body: JSON.stringify({ model, messages: [] }),
      });
    await allow(["*.example", hostname]);
    for (let count = 0; count < 3; count += 1) expect((await call()).status).toBe(200);
    vi.setSystemTime(Date.now() + 60_000);
    expect((await call()).status).toBe(200);
    expect(reads()).toBe(1);
    await allow(["models.example"]);
    vi.setSystemTime(Date.now() + 4000);
    await expect(call()).rejects.toThrow(`url_not_allowed: ${hostname} is not one of the organisation's allowed hosts`);
    expect(await requestsOf(model)).toHaveLength(4);
    const send = wayOut(env, await allowedHosts(env, api.scope));
    const { signal } = new AbortController();
    await expect(send(new URL(env.MODEL_URL), { signal })).rejects.toThrow(
      "is not one of the organisation's allowed hosts",
    );
  } finally {
    vi.useRealTimers();
  }
});
