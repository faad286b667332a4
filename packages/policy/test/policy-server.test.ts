/** The server in its thread, with the weights that come with Rollcall. */
import { afterEach, expect, test } from "vitest";
import { POLICY_MODEL } from "../known-environments.ts";
import { type PolicyServer, type PolicyServerOptions, startPolicyServer } from "../policy-server.ts";

const servers: PolicyServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function start(options?: PolicyServerOptions): Promise<PolicyServer> {
  const server = await startPolicyServer(options);
  servers.push(server);
  return server;
}

async function say({ url }: PolicyServer): Promise<string> {
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: POLICY_MODEL,
      messages: [{ role: "user", content: "Reverse: abcde" }],
      max_tokens: 12,
      min_tokens: 1,
    }),
  });
  const body = (await response.json()) as { choices: { message: { content: string } }[] };
  return body.choices[0]?.message.content ?? "";
}

test("it answers from its own thread and has ended after the stop", async () => {
  const server = await start();
  expect(await say(server)).not.toBe("");
  await server.stop();
  await expect(say(server)).rejects.toThrow();
});

test("it can use its port again after a stop, and takes another port if that one is in use", async () => {
  const first = await start();
  await first.stop();
  const again = await start({ port: first.port });
  expect(again.url).toBe(first.url);
  const other = await start({ port: first.port });
  expect(other.port).not.toBe(first.port);
});

test("with a seed it gives the same replies in the same order after every start", async () => {
  const [one, two] = [await start({ seed: 7 }), await start({ seed: 7 })];
  const said = async (server: PolicyServer) => [await say(server), await say(server)];
  expect(await said(one)).toEqual(await said(two));
});
