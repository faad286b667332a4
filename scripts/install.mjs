// Installs the packages of the lockfile, if they are not installed yet, and a Node if that of this machine is too old.
// Runs before `npm start` and `npm test` on any Node >= 20, so it imports nothing but Node and uses nothing newer than
// Node 20.0. With `--run` it installs only what the platform needs to run, without the packages for development; if these
// are installed, they stay.
//
// Invariant: node_modules/.rollcall-installed holds the hash of the lockfiles that were installed, and which of their
// packages, and is written last.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
/** The parts of the packages, as the stamp names them. */
const [ALL, TO_RUN] = ["all", "to run"];
const nodeFolder = join(root, "scripts", "node");
const modules = join(root, "node_modules");
const stampFile = join(modules, ".rollcall-installed");
const [installed, installedPart] = (readIfThere(stampFile) ?? "").split("\n");
const withoutDevelopment = process.argv.includes("--run") && installedPart !== ALL;

const OLDEST_NODE = 20;
/** The platform, its tests and its commands run with this Node or a newer one. */
const OWN_NODE = 24;
const major = Number(process.versions.node.split(".")[0]);
/** Also if it is the one that runs this. */
const needsOwnNode = major < OWN_NODE || realpathSync(process.execPath).startsWith(realpathSync(nodeFolder));
const COUNT_EVERY_MS = 1000;

/** Why this machine cannot run Rollcall, or null. */
function unsupported() {
  if (major < OLDEST_NODE) {
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

/** The lines of the stamp: what is installed for this kind of machine (the packages hold binaries), and whether all of it. */
function wanted() {
  const hash = createHash("sha256");
  for (const folder of [root, nodeFolder]) hash.update(readFileSync(join(folder, "package-lock.json")));
  const node = needsOwnNode ? "with its own Node" : "with the machine's Node";
  return [`${hash.digest("hex")} ${process.platform} ${process.arch} ${node}`, withoutDevelopment ? TO_RUN : ALL];
}

function readIfThere(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw error;
  }
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** Runs `npm install` in a folder. npm's warnings are about packages; its errors go to stderr, as all of its output. */
function npmInstall(folder, args) {
  const npm = process.env.npm_execpath;
  const all = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", ...args];
  const [command, first] = npm?.endsWith(".js") ? [process.execPath, [npm]] : ["npm", []];
  const child = spawn(command, [...first, ...all], { cwd: folder, stdio: ["ignore", 2, 2] });
  return new Promise((resolve) => {
    child.on("error", (error) => fail(`npm could not be run: ${error.message}`));
    child.on("exit", (code, signal) => {
      if (code !== 0) fail(`npm install failed (${signal ?? `exit ${code}`}); see its output above.`);
      resolve();
    });
  });
}

/** Shows how many packages are there, in place on a terminal. */
function showProgress(total) {
  if (!process.stderr.isTTY) return () => undefined;
  const show = () => process.stderr.write(`\r${Math.min(countPackages(modules), total)} of ${total} packages `);
  const timer = setInterval(show, COUNT_EVERY_MS);
  return () => {
    clearInterval(timer);
    process.stderr.write(`\r${" ".repeat(40)}\r`);
  };
}

/** A link counts as one package: that of this repository leads back here. */
function countPackages(folder) {
  let count = 0;
  for (const entry of entriesIn(folder)) {
    const { name } = entry;
    if (name.startsWith(".")) continue;
    if (entry.isSymbolicLink()) count += 1;
    else if (name.startsWith("@")) count += countPackages(join(folder, name));
    else count += 1 + countPackages(join(folder, name, "node_modules"));
  }
  return count;
}

function entriesIn(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  }
}

/** The packages of the lockfile for this machine. */
function packagesToInstall() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const isFor = (list, own) => list === undefined || [list].flat().includes(own);
  return Object.entries(packages).filter(
    ([path, { dev, os, cpu }]) =>
      path.startsWith("node_modules/") &&
      !(withoutDevelopment && dev) &&
      isFor(os, process.platform) &&
      isFor(cpu, process.arch),
  ).length;
}

/** Scripts of package.json find it in node_modules/.bin, as bin/rollcall.mjs does. */
async function installNode() {
  const link = join(modules, ".bin", "node");
  rmSync(link, { force: true });
  if (!needsOwnNode) return;
  await npmInstall(nodeFolder, []);
  const packages = join(nodeFolder, "node_modules");
  // The headers, 65 MB, are for compiling native modules, and there are none.
  const names = entriesIn(packages).flatMap(({ name }) => (name.startsWith(".") ? [] : name));
  for (const name of names) rmSync(join(packages, name, "include"), { recursive: true, force: true });
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(relative(dirname(link), join(packages, ".bin", "node")), link);
}

async function install() {
  const what = withoutDevelopment ? "what it needs to run" : "its packages, with those for development";
  process.stderr.write(`Rollcall installs ${what} (once, about a minute) …\n`);
  const stop = showProgress(packagesToInstall());
  rmSync(stampFile, { force: true });
  await npmInstall(root, withoutDevelopment ? ["--omit=dev"] : []);
  await installNode();
  stop();
}

const target = wanted();
if (installed !== target[0] || installedPart !== target[1]) {
  const reason = unsupported();
  if (reason !== null) fail(reason);
  await install();
  writeFileSync(stampFile, `${target.join("\n")}\n`);
}
