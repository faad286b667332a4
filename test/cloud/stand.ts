/** A stub of Cloudflare, a deployed platform, and a folder in which `rollcall deploy` runs against them. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import type { CommandResult } from "../cli/run-rollcall.ts";
import { CloudflareStub, type Seen } from "./cloudflare-stub.ts";
import { startDeployed } from "./deployed-stub.ts";

const BIN = join(PACKAGE_ROOT, "bin/rollcall.mjs");

export type Stand = Awaited<ReturnType<typeof openStand>>;

/** Closed at the end of the test. */
export async function openStand(accounts?: readonly string[]) {
  const { stub, url: api, stop } = await CloudflareStub.start(accounts);
  const prod = await startDeployed(stub, "rollcall-prod");
  const preview = await startDeployed(stub, "rollcall-prod-preview");
  const folder = mkdtempSync(join(tmpdir(), "rollcall-deploying-"));
  onTestFinished(async () => {
    await Promise.all([stop(), prod.stop(), preview.stop()]);
    rmSync(folder, { recursive: true });
  });
  const env = {
    CLOUDFLARE_API_BASE_URL: api,
    CLOUDFLARE_API_TOKEN: "a-token-of-cloudflare",
    CLOUDFLARE_ACCOUNT_ID: "",
    ROLLCALL_CONFIG: join(folder, "config.json"),
  };
  /** In a process group of its own: SIGKILL ends the command and its wrangler. */
  const rollcall = (...words: readonly string[]) =>
    new Promise<CommandResult>((resolve, reject) => {
      const child = spawn(process.execPath, [BIN, ...words], {
        cwd: folder,
        env: { ...process.env, ...env },
        detached: true,
      });
      let [stdout, stderr] = ["", ""];
      child.stdout.on("data", (part) => {
        stdout += part;
      });
      child.stderr.on("data", (part) => {
        stderr += part;
      });
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, stdout, stderr }));
      running = child.pid ?? null;
    });
  let running: number | null = null;
  return {
    ...{ stub, prod, preview, folder, env, rollcall },
    /** `rollcall deploy --name prod` at the stub's address, with more words. The stub plays no runs. */
    deploy: (...words: readonly string[]) =>
      rollcall("deploy", "--name", "prod", "--url", prod.url, "--no-smoke", ...words),
    /** Sends the running command a signal. */
    send: (signal: NodeJS.Signals) => {
      if (running !== null) process.kill(-running, signal);
    },
    /** Kills the running command at the first request for which this is true: after its effect, before its reply. */
    killAt: (isIt: (seen: Seen) => boolean) => {
      stub.afterEffect = async (seen) => {
        if (!isIt(seen) || running === null) return;
        stub.afterEffect = async () => undefined;
        process.kill(-running, "SIGKILL");
        await new Promise<never>(() => undefined);
      };
    },
    read: (file: string) => readFileSync(join(folder, file), "utf8"),
  };
}
