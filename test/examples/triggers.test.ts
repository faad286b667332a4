/** The programs of examples/triggers, run as they stand there: who sends a delivery, and who says on GitHub what came of it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";

const FOLDER = join(import.meta.dirname, "../../examples/triggers");
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const started: ChildProcess[] = [];
afterAll(() => {
  for (const child of started) child.kill();
});

interface Asked {
  readonly line: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server on loopback that answers all alike, and what it was asked. */
async function serve(answer: (line: string) => unknown) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      const line = `${request.method} ${request.url}`;
      asked.push({ line, headers: request.headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(202, { "content-type": "application/json" }).end(JSON.stringify(answer(line)));
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

test("what the shell sends and what Node sends is one delivery, signed by the standard", async () => {
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

test("a run that ended becomes the commit's status on GitHub, and what nobody signed becomes nothing", async () => {
  const metadata = { repo: "acme/policy", sha: "0d1a26e6" };
  const run = { id: "run_1", status: "completed", metadata, report: { reward: { mean: 0.75 } } };
  await using rollcall = await serve(() => run);
  await using github = await serve(() => ({ id: 1 }));
  const env = {
    ...process.env,
    ...{ ROLLCALL_URL: rollcall.url, ROLLCALL_API_KEY: "rk_1", WEBHOOK_SECRET: SECRET, PORT: "0" },
    ...{ GITHUB_API: github.url, GITHUB_TOKEN: "ghp_1" },
  };
  const child = spawn(process.execPath, [join(FOLDER, "commit-status.mjs")], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(child);
  const [line] = await once(child.stdout, "data");
  const url = `http://127.0.0.1:${/\d+/.exec(String(line))?.[0]}`;
  const tell = async (type: string, signed = true) => {
    const [id, at] = ["evt_1", String(Math.floor(Date.now() / 1000))];
    const body = JSON.stringify({ id, type, data: { run_id: "run_1" } });
    const told = signed ? `v1,AAAA ${signature(id, at, body)}` : "v1,AAAA";
    const headers = { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": told };
    return (await fetch(url, { method: "POST", headers, body })).status;
  };
  expect(await tell("run.completed", false)).toBe(401);
  expect(await tell("batch.ready")).toBe(204);
  expect(github.asked).toEqual([]);
  expect(await tell("run.completed")).toBe(204);
  run.report.reward.mean = 0.25;
  expect(await tell("run.completed")).toBe(204);
  expect(rollcall.asked[0]).toMatchObject({ line: "GET /v1/runs/run_1", headers: { authorization: "Bearer rk_1" } });
  expect(
    github.asked.map(({ line: asked, headers, body }) => [asked, headers.authorization, JSON.parse(body)]),
  ).toEqual([
    [
      "POST /repos/acme/policy/statuses/0d1a26e6",
      "Bearer ghp_1",
      { state: "success", context: "rollcall/eval", description: "completed, mean reward 0.750" },
    ],
    [
      "POST /repos/acme/policy/statuses/0d1a26e6",
      "Bearer ghp_1",
      { state: "failure", context: "rollcall/eval", description: "completed, mean reward 0.250" },
    ],
  ]);
});
