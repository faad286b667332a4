/** Makes links that open the web page of a platform, signed in, and opens them in a browser. */
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { rolloutPage, runPage } from "../contract/pages.ts";
import type { CallOptions, RollcallClient } from "../sdk/client.ts";
import { usageError } from "./exit.ts";

export interface PageLink {
  /** It holds a code that works once, until `expires_at` (seconds). */
  readonly url: string;
  readonly expires_at: number;
}

/** A link that signs a browser in with the client's key and opens the path. */
export async function pageLink(client: RollcallClient, path: string, options: CallOptions = {}): Promise<PageLink> {
  const { url, expires_at } = await client.sessions.createCode(options);
  return { url: path === "/" ? url : `${url}&to=${path}`, expires_at };
}

/** The page of a run or a rollout, by its id; without an id, the home page. */
export function pathOf(id: string | undefined): string {
  if (id === undefined) return "/";
  if (/^run_\w+$/.test(id)) return runPage(id);
  if (/^ro_\w+$/.test(id)) return rolloutPage(id);
  throw usageError(`${id} is not the id of a run or a rollout`, "id");
}

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  /** Whether the output goes to a terminal. */
  readonly isTTY: boolean;
}

/** The program that opens URLs here; null without a terminal, in CI, and without a screen or such a program. */
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

/** True once the program has started; does not wait for its end. */
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
