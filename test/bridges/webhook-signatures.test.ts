/** Signatures of webhooks, verified with the Python library of Standard Webhooks. Skipped without Python. */
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { signedHeaders } from "../../src/kernel/kit/sign-webhook.ts";
import { bodyOf } from "../../src/webhooks/rules.ts";
import { pythonVenv, run } from "../python/python-venv.ts";

const SECRETS = [
  "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=",
  "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
];
const VERIFY = `
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
said = json.loads(sys.argv[1])
for secret in said["secrets"]:
    print(Webhook(secret).verify(said["body"], said["headers"])["data"]["error"])
    try:
        Webhook(secret).verify(said["body"] + " ", said["headers"])
    except WebhookVerificationError:
        print("refused")
`;
const venv = await pythonVenv("webhooks", resolve(import.meta.dirname, "webhook-requirements.txt"), "WEBHOOKS_VENV");

test.skipIf(venv === null)("the Python library accepts either signature of a rotation, and no other body", async () => {
  const data = { run_id: "run_1", error: "ünïcode 🙂" };
  const body = bodyOf({ id: "evt_1", type: "run.failed", at: Date.now(), subject: "run_1", data });
  const headers = signedHeaders(SECRETS, "msg_1", body, Date.now());
  const said = await run(venv?.python ?? "", ["-c", VERIFY, JSON.stringify({ body, headers, secrets: SECRETS })]);
  expect(said.trim().split("\n")).toEqual([data.error, "refused", data.error, "refused"]);
});
