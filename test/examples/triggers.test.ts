/**
 * Runs the programs of examples/triggers unchanged: the sender of a delivery, and the receiver that reports the result
 * to GitHub.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import onWeights from "../../examples/triggers/eval-new-weights.json" with { type: "json" };
import onPush from "../../examples/triggers/eval-on-push.json" with { type: "json" };
import push from "../../examples/triggers/github-push.json" with { type: "json" };
import update from "../../examples/triggers/huggingface-update.json" with { type: "json" };
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";

const FOLDER = join(import.meta.dirname, "../../examples/triggers");
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const started: ChildProcess[] = [];
let model: ScriptedModel;
let platform: Platform;
beforeAll(async () => {
  model = await startScriptedModel({ reply: () => "\\boxed{4}" });
  const log = (line: string) => process.stderr.write(`${line}\n`);
  platform = await bootPlatform({ directory: null, port: testPort(44), log });
});
afterAll(async () => {
  for (const child of started) child.kill();
  await platform.stop();
  await model.stop();
});

interface Asked {
  readonly line: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server on loopback that answers every request in the same way and records it. */
async function serve(answer: (line: string) => unknown, status = () => 202) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      const line = `${request.method} ${request.url}`;
      asked.push({ line, headers: request.headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(status(), { "content-type": "application/json" }).end(JSON.stringify(answer(line)));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, asked, [Symbol.asyncDispose]: async () => void server.close() };
}

function signature(id: string, timestamp: string, body: string): string {
  const key = Buffer.from(SECRET.slice("whsec_".length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
}

test("the shell and Node send the same delivery, signed by the standard", async () => {
  await using hook = await serve(() => ({ run_id: "run_1", duplicate: false }));
  const env = { ...process.env, HOOK_URL: `${hook.url}/hooks/tr_1`, HOOK_SECRET: SECRET };
  const senders: [string, string][] = [
    [process.execPath, "send.mjs"],
    ["sh", "send.sh"],
  ];
  for (const [command, file] of senders) {
    const said = await new Promise<string>((resolve, reject) => {
      execFile(command, [join(FOLDER, file), "2026-11-30"], { env }, (error, out) =>
        error ? reject(error) : resolve(out),
      );
    });
    expect(said).toContain('"run_id":"run_1"');
  }
  expect(hook.asked.map(({ line, body, headers }) => [line, JSON.parse(body), headers["webhook-id"]])).toEqual(
    Array(2).fill([
      "POST /hooks/tr_1",
      { type: "training.due", data: { night: "2026-11-30", seed: 20_261_130 } },
      "nightly_2026-11-30",
    ]),
  );
  for (const { headers, body } of hook.asked) {
    const at = String(headers["webhook-timestamp"]);
    expect(headers["webhook-signature"]).toBe(signature("nightly_2026-11-30", at, body));
    expect(headers["content-type"]).toBe("application/json");
  }
});

/** The receiver as its own process; `github` gets its reports. */
async function receive(secret: string, github: string, port = 0): Promise<string> {
  const env = { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port), GITHUB_API: github, GITHUB_TOKEN: "ghp_1" };
  const stdio = ["ignore", "pipe", "inherit"] as const;
  const child = spawn(process.execPath, [join(FOLDER, "commit-status.mjs")], { env, stdio: [...stdio] });
  started.push(child);
  const [line] = await once(child.stdout ?? child, "data");
  return `http://127.0.0.1:${/\d+/.exec(String(line))?.[0]}`;
}

const QUESTION = [{ question: "What is 2 + 2?", answer: "#### 4" }];

async function make(path: string, body: object): Promise<{ readonly url: string; readonly secret: string }> {
  const headers = { authorization: `Bearer ${platform.key}`, "content-type": "application/json" };
  const reply = await fetch(`${platform.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  expect(reply.status).toBe(201);
  return (await reply.json()) as { url: string; secret: string };
}

test("a push is evaluated, and the run's result becomes the commit's status on GitHub, without polling", async () => {
  const posted = Promise.withResolvers<void>();
  await using github = await serve(() => posted.resolve());
  const port = testPort(46);
  const { secret } = await make("/v1/webhook-endpoints", { url: `http://127.0.0.1:${port}/`, events: ["run.*"] });
  await receive(secret, github.url, port);
  const { num_examples: _, ...template } = onPush.run;
  const run = { ...template, dataset: QUESTION, endpoint: { base_url: model.url } };
  const trigger = await make("/v1/triggers", { ...onPush, run });
  const body = JSON.stringify(push.body);
  const mac = createHmac("sha256", onPush.verify.secret).update(body).digest("hex");
  const headers = { ...push.headers, "x-hub-signature-256": `sha256=${mac}` };
  const told = (await (await fetch(trigger.url, { method: "POST", headers, body })).json()) as { run_id: string };
  await posted.promise;
  const [{ line, headers: sent, body: status } = { line: "", headers: {}, body: "" }] = github.asked;
  expect([line, sent.authorization]).toEqual([`POST /repos/acme/policy/statuses/${push.body.after}`, "Bearer ghp_1"]);
  expect(JSON.parse(status)).toEqual({
    ...{ state: "success", context: "rollcall/eval", description: "completed, mean reward 1.000" },
    target_url: `${platform.url}/v1/runs/${told.run_id}`,
  });
});

test("new weights announced by the Hub are evaluated under the Hub's name for them", async () => {
  const { num_examples: _, ...template } = onWeights.run;
  const run = { ...template, dataset: QUESTION, endpoint: { base_url: model.url } };
  const trigger = await make("/v1/triggers", { ...onWeights, run });
  const delivery = { method: "POST", headers: update.headers, body: JSON.stringify(update.body) };
  const { run_id } = (await (await fetch(trigger.url, delivery)).json()) as { run_id: string };
  const headers = { authorization: `Bearer ${platform.key}` };
  await (await fetch(`${platform.url}/v1/runs/${run_id}/events`, { headers })).text();
  const ended = await (await fetch(`${platform.url}/v1/runs/${run_id}`, { headers })).json();
  expect(ended).toMatchObject({
    ...{ status: "completed", model: "acme/policy-4b", counts: { scored: 1 } },
    metadata: { weights: "acme/policy-4b", revision: update.body.repo.headSha },
  });
  expect(model.requests.at(-1)?.model).toBe("acme/policy-4b");
});

test("an unsigned delivery, an event other than a run's end, and a status that GitHub refuses become no status", async () => {
  let answer = 500;
  await using github = await serve(
    () => null,
    () => answer,
  );
  const url = await receive(SECRET, github.url);
  const data = { status: "completed", metadata: { repo: "acme/policy", sha: "0d1a26e6" }, reward: { mean: 0.25 } };
  const tell = async (type: string, signed = true) => {
    const [id, at] = ["evt_1", String(Math.floor(Date.now() / 1000))];
    const body = JSON.stringify({ id, type, data });
    const told = signed ? `v1,AAAA ${signature(id, at, body)}` : "v1,AAAA";
    const headers = { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": told };
    return (await fetch(url, { method: "POST", headers, body })).status;
  };
  expect([await tell("run.completed", false), await tell("run.cancelled"), github.asked.length]).toEqual([401, 204, 0]);
  expect(await tell("run.failed")).toBe(502);
  answer = 201;
  expect(await tell("run.completed")).toBe(204);
  expect(JSON.parse(github.asked[1]?.body ?? "")).toEqual({
    ...{ state: "failure", context: "rollcall/eval", description: "completed, mean reward 0.250" },
  });
});
