#!/usr/bin/env node
// Starts the command line. Plain JavaScript: it is the one file that any Node >= 20 must be able to read. The rest is
// TypeScript in a checkout, which Node runs by itself from 22.18 and 23.6 on, and compiled in a package; both use what
// those have. An older Node hands over to the one npm brought along.
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import module from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const script = realpathSync(fileURLToPath(import.meta.url));

function isNewEnough(version) {
  const [major, minor] = version.split(".").map(Number);
  if (major === 22) return minor >= 18;
  if (major === 23) return minor >= 6;
  return major > 23;
}

/** The Node in the nearest node_modules at or above the package: npm may have hoisted it. */
function bundledNode() {
  for (let folder = dirname(dirname(script)); ; folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", ".bin", "node");
    if (existsSync(candidate)) return realpathSync(candidate);
    if (folder === dirname(folder)) return null;
  }
}

function handOver(node) {
  const child = spawn(node, [script, ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to the child too, and two of them would mean "stop at once".
      if (signal === "SIGINT" && process.stdin.isTTY) return;
      child.kill(signal);
    });
  }
  child.on("error", (error) => {
    process.stderr.write(`${node} could not be run: ${error.message}\n`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    process.exit(code ?? 128 + constants.signals[signal]);
  });
}

if (isNewEnough(process.versions.node)) {
  // A command starts in two thirds of the time when its files need not be stripped of types and compiled again.
  module.enableCompileCache?.();
  const compiled = join(dirname(script), "../dist/src/cli/main.js");
  await import(existsSync(compiled) ? compiled : "../src/cli/main.ts");
} else {
  const node = bundledNode();
  if (node === null) {
    process.stderr.write(
      `rollcall: Node ${process.versions.node} is too old, and the Node that comes with Rollcall is not installed: ` +
        "install it with optional packages (in a checkout: node scripts/install.mjs), or use Node 24.\n",
    );
    process.exit(1);
  }
  handOver(node);
}
