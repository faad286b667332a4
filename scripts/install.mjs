// Installs the packages of the lockfile, if they are not installed yet. Runs before `npm start` and `npm test` on any
// Node >= 20, so it imports nothing but Node and uses nothing newer than Node 20.0.
//
// Invariant: node_modules/.rollcall-installed holds the hash of the lockfile that was installed, and is written last.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const stampFile = join(root, "node_modules", ".rollcall-installed");

const OLDEST_NODE = 20;

/** Why this machine cannot run Rollcall, or null. */
function unsupported() {
  if (Number(process.versions.node.split(".")[0]) < OLDEST_NODE) {
    return `Rollcall needs Node ${OLDEST_NODE} or newer to install itself; this is ${process.version}.`;
  }
  if (process.platform !== "linux" && process.platform !== "darwin") {
    return `Rollcall runs on Linux and macOS; ${process.platform} is not supported (on Windows, use WSL).`;
  }
  if (process.arch !== "x64" && process.arch !== "arm64") {
    return `Rollcall runs on x64 and arm64; ${process.arch} is not supported.`;
  }
  // workerd and the Node that npm brings are linked against glibc; Alpine has musl.
  if (process.platform === "linux" && !glibc()) {
    return "Rollcall needs glibc, which workerd is built for; Alpine and other musl systems are not supported.";
  }
  return null;
}

function glibc() {
  return process.report.getReport().header.glibcVersionRuntime !== undefined;
}

/** Identifies what must be installed: this lockfile, for this kind of machine (the packages hold binaries). */
function wanted() {
  const lockfile = readFileSync(join(root, "package-lock.json"));
  const hash = createHash("sha256").update(lockfile).digest("hex");
  return `${hash} ${process.platform} ${process.arch}\n`;
}

function installed() {
  try {
    return readFileSync(stampFile, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw error;
  }
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

function install() {
  process.stderr.write("Installing Rollcall's packages (once, about a minute) …\n");
  const npm = process.env.npm_execpath;
  const args = ["install", "--no-save", "--no-audit", "--no-fund"];
  const [command, first] = npm?.endsWith(".js") ? [process.execPath, [npm]] : ["npm", []];
  // npm's own output goes to stderr, so that stdout of a command with --json has only its result.
  const done = spawnSync(command, [...first, ...args], { cwd: root, stdio: ["ignore", 2, 2] });
  if (done.error) fail(`npm could not be run: ${done.error.message}`);
  if (done.status !== 0) fail(`npm install failed (exit ${done.status}); see its output above.`);
}

const target = wanted();
if (installed() !== target) {
  const reason = unsupported();
  if (reason !== null) fail(reason);
  install();
  writeFileSync(stampFile, target);
}
