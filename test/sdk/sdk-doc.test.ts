/** The program in docs/sdk.md, run as it stands there, by a process of its own, against a platform and a model. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { rollcallName } from "../../src/local/package-root.ts";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { AccountsClient } from "../../src/sdk/accounts-client.ts";
import { BillingClient } from "../../src/sdk/billing-client.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { EndpointsClient } from "../../src/sdk/endpoints-client.ts";
import { FleetsClient } from "../../src/sdk/fleets-client.ts";
import { LedgerClient } from "../../src/sdk/ledger-client.ts";
import { RolloutsClient } from "../../src/sdk/rollouts-client.ts";
import { SessionsClient } from "../../src/sdk/sessions-client.ts";
import { TriggersClient } from "../../src/sdk/triggers-client.ts";
import { TurnsClient } from "../../src/sdk/turns-client.ts";
import { WebhooksClient } from "../../src/sdk/webhooks-client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { deathOf, endGroup, serve } from "../local/served-platform.ts";
import { testPort } from "../local/test-port.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PAGE = readFileSync(join(ROOT, "docs/sdk.md"), "utf8");
const [, PROGRAM = ""] = /```ts\n([\s\S]*?)```/.exec(PAGE) ?? [];

/** A folder in which `rollcall` is installed, with the program in it. */
function folderWithProgram(): string {
  const folder = makeThrowAwayDirectory();
  const own = join(folder, "node_modules", rollcallName());
  mkdirSync(dirname(own), { recursive: true });
  symlinkSync(ROOT, own);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "program.ts"), PROGRAM);
  return folder;
}

test("the program of the page runs an eval over an uploaded dataset and prints its results", async () => {
  const [folder, directory] = [folderWithProgram(), makeThrowAwayDirectory()];
  const model = await startScriptedModel({ reply: () => ({ content: "\\boxed{4}" }) });
  const served = await serve(directory, testPort(45));
  try {
    const env = { ROLLCALL_URL: served.url, ROLLCALL_API_KEY: served.key, MODEL_URL: model.url };
    const { stdout } = await promisify(execFile)(process.execPath, ["program.ts"], {
      cwd: folder,
      env: { ...process.env, ...env },
    });
    const lines = stdout.trimEnd().split("\n");
    expect(lines.slice(0, 5)).toEqual([...Array(4).fill("scored 1"), "completed 1"]);
    expect(lines.slice(5)).toEqual(Array(4).fill(expect.stringMatching(/^[0-9a-f]+ 1$/)));
  } finally {
    endGroup(served);
    await deathOf(served.workerd);
    await model.stop();
    for (const left of [folder, directory]) rmSync(left, { recursive: true, force: true });
  }
});

test("the page names every method of the client, and no other", () => {
  const parts = [
    SessionsClient,
    EndpointsClient,
    RolloutsClient,
    BillingClient,
    LedgerClient,
    AccountsClient,
    FleetsClient,
    TriggersClient,
    TurnsClient,
    WebhooksClient,
  ];
  const classes = [RollcallClient, ...parts].map(({ prototype }) => prototype);
  const methods = classes.flatMap((one: object) => Object.getOwnPropertyNames(one));
  const [, table = ""] = /## Methods\n([\s\S]*?)\n\n`list/.exec(PAGE) ?? [];
  const named = Array.from(table.matchAll(/`(\w+)`/g), ([, name]) => name);
  expect(named.sort()).toEqual(methods.filter((name) => name !== "constructor").sort());
});
