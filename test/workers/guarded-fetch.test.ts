import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { guardedFetch } from "../../src/runtime/guarded-fetch.ts";
import { requestsOf } from "./platform.ts";
import { script, type Turns } from "./script.ts";

const PUBLIC_ONLY = { ...env, ALLOW_PRIVATE_ENDPOINTS: "false" };
const url = `${env.MODEL_URL}/chat/completions`;

function asking(turns: Turns, headers: Record<string, string> = {}) {
  const model = script(turns);
  const body = JSON.stringify({ model, messages: [] });
  return { model, init: { method: "POST", headers, body } };
}

test("an environment is let out to public addresses only, unless the deployment's own network is meant", async () => {
  const { model, init } = asking(["hello"]);
  for (const address of [url, "http://10.0.0.1/", "http://metadata.internal/", "http://[::1]/"]) {
    await expect(guardedFetch(PUBLIC_ONLY)(address, init)).rejects.toThrow(
      /^fetch: \S+ is not a public address/,
    );
  }
  expect(await requestsOf(model)).toEqual([]);
  const reply = await guardedFetch(env)(url, init);
  expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining("hello")]);
});

test("what is no web address is refused", async () => {
  await expect(guardedFetch(env)("file:///etc/passwd")).rejects.toThrow("file: is not offered");
  await expect(guardedFetch(env)("not a url")).rejects.toThrow("is no URL");
});

test("a redirect is followed, with its body after 307, and without end it is an error", async () => {
  const onward = { kind: "status", status: 307, headers: { location: url } } as const;
  const once = asking([{ fault: onward, times: 1, reply: "there" }], { "idempotency-key": "k" });
  const reply = await guardedFetch(env)(url, once.init);
  expect(await reply.text()).toContain("there");
  expect((await requestsOf(once.model)).length).toBe(2);
  const round = asking([{ fault: onward }]);
  await expect(guardedFetch(env)(url, round.init)).rejects.toThrow("leads on more than 5 times");
});

test("a redirect to a private address is not followed", async () => {
  const asked: string[] = [];
  const leading = (location: string) => async (to: URL) => {
    asked.push(to.href);
    return new Response("moved", { status: 302, headers: { location } });
  };
  for (const inward of ["http://169.254.169.254/latest", "//localhost/", "file:///etc/passwd"]) {
    const guarded = guardedFetch(PUBLIC_ONLY, leading(inward));
    await expect(guarded("https://search.example.com/")).rejects.toThrow(
      /not a public|not offered/,
    );
  }
  expect(new Set(asked)).toEqual(new Set(["https://search.example.com/"]));
});

test("credentials do not go along to another server", async () => {
  const other = url.replace("127.0.0.1", "localhost");
  const across = { kind: "status", status: 307, headers: { location: other } } as const;
  const headers = { authorization: "Bearer mine", "idempotency-key": "k" };
  const asked = asking([{ fault: across, times: 1, reply: "there" }], headers);
  await (await guardedFetch(env)(url, asked.init)).text();
  const sent = (await requestsOf(asked.model)).map(({ authorization }) => authorization);
  expect(sent).toEqual(["Bearer mine", "undefined"]);
});
