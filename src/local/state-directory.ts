/**
 * The state directory: everything that a local platform stores. `platform.lock` (its owner), `platform.json` (exists
 * only while the platform answers), `running` (exists from before workerd starts until an orderly stop), `secret` and
 * `api-key` (created once, readable only by the owner), `store/` (objects, D1, R2; or a link to it: store-place.ts) and
 * `policy-port`. Delete the directory to start fresh.
 */
import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import * as z from "zod";
import type { Scope } from "../contract/scope.ts";
import { type Mac, mintId, mintToken, tokenKind } from "../core/ids.ts";
import { createFile, hasCode, readIfThere, replaceFile } from "./directory-lock.ts";
import { directoryFault } from "./directory-unusable.ts";

/** What a client needs to reach the platform of a directory. */
export const ReadyFile = z.object({
  url: z.string(),
  key: z.string(),
  pid: z.int(),
  workerd_pid: z.int(),
  started_at: z.int().describe("seconds since the epoch"),
  policy_url: z.string().nullable(),
  control_url: z.string().optional().describe("where it loads environments; absent before 0.3"),
  build: z.string().optional().describe("the code it runs, environments of one's own left out: sourcesHash"),
});
export type ReadyFile = z.infer<typeof ReadyFile>;

/** ROLLCALL_DIR, or `.rollcall` in the current folder. */
export function stateDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return resolve(environment["ROLLCALL_DIR"] || ".rollcall");
}

/** Creates the folder and its parents. Node's recursive mkdir loops forever where no folder can be made (/proc). */
export function makeDirectory(path: string): void {
  const parent = dirname(path);
  if (!existsSync(parent)) makeDirectory(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, "EEXIST") || !statSync(path).isDirectory()) throw error;
  }
}

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** An in-memory file system on Linux. */
export const MEMORY = "/dev/shm";
const ROOMY_BYTES = 1024 ** 3;

/** A temporary state directory: in memory if there is space, since a sync to disk takes ten times as long. */
export function makeThrowAwayDirectory(): string {
  return mkdtempSync(join(roomyMemory() ?? tmpdir(), "rollcall-"));
}

/** Null if there is no such file system, or too little space in it. */
export function roomyMemory(): string | null {
  if (process.platform !== "linux") return null;
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOMY_BYTES ? MEMORY : null;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}

/** Seals endpoint keys and signs ids: 64 hex digits. If it is lost, the directory's sealed keys cannot be decrypted. */
export function secretOf(directory: string): string {
  return readOrMake(join(directory, "secret"), () => randomBytes(32).toString("hex"));
}

export function apiKeyOf(directory: string): string {
  const mac = macOf(secretOf(directory));
  const file = join(directory, "api-key");
  // The key was made with another secret or by another release, so it would not be accepted.
  if (tokenKind(readIfThere(file)?.trim() ?? "", mac) === null) rmSync(file, { force: true });
  return readOrMake(file, () => mintToken("rk", { random: randomBytes, mac }));
}

/** Replaces the key with a new one. */
export function newApiKeyOf(directory: string): string {
  const key = mintToken("rk", { random: randomBytes, mac: macOf(secretOf(directory)) });
  replaceFile(join(directory, "api-key"), key);
  return key;
}

/** The organisation, project and key of a local platform: the same at every boot of the directory. */
export function localAccount(directory: string): Scope & { readonly keyId: string } {
  const fixed = { now: 0, random: (bytes: number) => new Uint8Array(bytes), mac: macOf(secretOf(directory)) };
  return { orgId: mintId("org", fixed), projectId: mintId("pj", fixed), keyId: mintId("key", fixed) };
}

/** Computes the same MAC as the Worker: `idMac` of src/kernel/kit/secrets.ts. */
function macOf(secret: string): Mac {
  const key = Buffer.from(hkdfSync("sha256", Buffer.from(secret, "hex"), "", "ids", 32));
  return (text) => {
    const bits = [...createHmac("sha256", key).update(text).digest()].map((byte) => byte.toString(2).padStart(8, "0"));
    const letters = bits.join("").match(/.{5}/g) ?? [];
    return letters.map((five) => BASE32.charAt(Number.parseInt(five, 2))).join("");
  };
}

export function writeReadyFile(directory: string, ready: ReadyFile): void {
  replaceFile(readyPath(directory), `${JSON.stringify(ready, null, 2)}\n`);
}

export function removeReadyFile(directory: string): void {
  rmSync(readyPath(directory), { force: true });
}

/**
 * How the last workerds ended that followed each other soon. For its use see `src/kernel/environment/quarantine.ts`.
 *
 * Invariant. A kill from outside (by a person, a supervisor, or the system for lack of memory) is a death that may not
 * happen again. A death by any other signal, or a hang that this process ended with a kill, counts as `byItself`.
 */
export interface Deaths {
  readonly deaths: number;
  /** How many of them workerd caused itself. */
  readonly byItself: number;
}

export const NO_DEATHS: Deaths = { deaths: 0, byItself: 0 };

/** Older deaths do not count. */
const SOON_MS = 10 * 60_000;

/**
 * Notes that a workerd is about to run here. Returns how many before it were not stopped in an orderly way, one soon
 * after the other: their work may have ended them.
 */
export function noteRunning(directory: string): Deaths {
  const deaths = deathsBefore(directory);
  noteDeaths(directory, deaths);
  return deaths;
}

/** Notes the deaths of workerds that followed each other soon, up to the running one. */
export function noteDeaths(directory: string, { deaths, byItself }: Deaths): void {
  replaceFile(runningPath(directory), `${deaths} ${byItself}`);
}

/** If the process that watched the last workerd ended with it, the cause is unknown: that counts as a kill. */
function deathsBefore(directory: string): Deaths {
  const noted = readIfThere(runningPath(directory));
  if (noted === null) return NO_DEATHS;
  const soon = Date.now() - statSync(runningPath(directory)).mtimeMs < SOON_MS;
  const [deaths = 0, byItself = 0] = soon ? noted.split(" ").map(Number) : [];
  return { deaths: deaths + 1, byItself };
}

export function noteStopped(directory: string): void {
  rmSync(runningPath(directory), { force: true });
}

/** The content of the file; the platform may no longer answer. */
export function readReadyFile(directory: string): ReadyFile | null {
  try {
    const text = readIfThere(readyPath(directory));
    return text === null ? null : ReadyFile.parse(JSON.parse(text));
  } catch (error) {
    throw directoryFault(error, directory);
  }
}

/** The policy server keeps its port, so that an interrupted run finds it again after the next start. */
export function policyPort(directory: string): number {
  return Number(readIfThere(join(directory, "policy-port")) ?? 0);
}

export function keepPolicyPort(directory: string, port: number): void {
  replaceFile(join(directory, "policy-port"), String(port));
}

function runningPath(directory: string): string {
  return join(directory, "running");
}

function readyPath(directory: string): string {
  return join(directory, "platform.json");
}

/** The file's text. It is created the first time, and is never half-written. */
function readOrMake(file: string, make: () => string): string {
  const kept = readIfThere(file);
  if (kept !== null) return kept;
  createFile(file, make());
  return readFileSync(file, "utf8");
}
