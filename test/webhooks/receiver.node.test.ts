/** The receiver of docs/webhooks.md in its own process: it accepts only signed events, each once. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { signedHeaders } from "../../src/kernel/kit/sign-webhook.ts";
import { bodyOf } from "../../src/webhooks/rules.ts";

const ROOT = join(import.meta.dirname, "../..");
const FILE = join(ROOT, "examples/webhooks/receiver.mjs");
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

test("the page's receiver accepts a signed event once, and refuses a changed or wrongly signed one", async () => {
  const source = readFileSync(FILE, "utf8");
  expect(readFileSync(join(ROOT, "docs/webhooks.md"), "utf8")).toContain(source.trimEnd());
  expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(30);
  const receiver = spawn(process.execPath, [FILE], { env: { ...process.env, SECRET, PORT: "0" } });
  try {
    const said = receiver.stdout.setEncoding("utf8");
    const [first] = await once(said, "data");
    const url = `http://127.0.0.1:${String(first).replace(/\D/g, "")}`;
    const body = bodyOf({ id: "evt_1", type: "run.completed", at: 0, subject: "run_1", data: { run_id: "run_1" } });
    const post = async (secret: string, text: string) => {
      const headers = signedHeaders(secret, "msg_1", body, Date.now());
      return (await fetch(url, { method: "POST", body: text, headers })).status;
    };
    expect([await post("another secret", body), await post(SECRET, `${body} `)]).toEqual([401, 401]);
    const printed = once(said, "data");
    expect([await post(SECRET, body), await post(SECRET, body)]).toEqual([204, 204]);
    expect(String((await printed)[0])).toBe('run.completed {"run_id":"run_1"}\n');
  } finally {
    receiver.kill();
  }
});
