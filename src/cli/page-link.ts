/** Links that open the web page of a platform, signed in; and the browser that opens one. */
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { rolloutPage, runPage } from "../contract/pages.ts";
import type { CallOptions, RollcallClient } from "../sdk/client.ts";
import { usageError } from "./exit.ts";

export interface PageLink {
  /** It holds a one-time code: good once, and until `expires_at` (seconds). */
  readonly url: string;
  readonly expires_at: number;
}

/** A link that signs a browser in as the client's key, and leads to the path. */
export async function pageLink(client: RollcallClient, path: string, options: CallOptions = {}): Promise<PageLink> {
  const { url, expires_at } = await client.sessions.createCode(options);
  return { url: path === "/" ? url : `${url}&to=${path}`, expires_at };
}

/** The page of a run or a rollout, by its id; of all runs without one. */
export function pathOf(id: string | undefined): string {
  if (id === undefined) return "/";
  if (/^run_\w+$/.test(id)) return runPage(id);
  if (/^ro_\w+$/.test(id)) return rolloutPage(id);
  throw usageError(`${id} is not the id of a run or a rollout`, "id");
}

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  /** Whether a person looks at what is printed. */
  readonly isTTY: boolean;
}

/** What opens addresses here; null where nobody watches, in CI, and where there is no screen or no opener. */
export async function openerOf({ env, platform, isTTY }: Surroundings): Promise<string | null> {
  if (!isTTY || env["CI"] || env["SSH_CONNECTION"]) return null;
  if (platform === "darwin") return "/usr/bin/open";
  if (platform !== "linux" || !(env["DISPLAY"] || env["WAYLAND_DISPLAY"])) return null;
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const file = join(folder, "xdg-open");
    if (folder !== "" && (await isProgram(file))) return file;
  }
  return null;
}

async function isProgram(file: string): Promise<boolean> {
  return await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** True once the opener runs; what becomes of it is not waited for. */
export function openBrowser(opener: string, url: string): Promise<boolean> {
  const child = spawn(opener, [url], { stdio: "ignore", detached: true });
  return new Promise((resolve) => {
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
