/**
 * Bundles an environment for an isolate of its own: one ES module with the environment, its packages, and this copy of
 * the library, which exports what the platform calls (core/protocol/served.ts).
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { environmentExports, PACKAGE_ROOT } from "./package-root.ts";

export interface EnvironmentBundle {
  readonly text: string;
  /** `sha256:` and hex. */
  readonly digest: string;
}

/** `entry`: the file that exports `loadEnvironment`. Rejects with esbuild's error if it does not bundle. */
export async function bundleEnvironment(entry: string, root: string = PACKAGE_ROOT): Promise<EnvironmentBundle> {
  const { outputFiles } = await build({
    stdin: { contents: entryModule(entry, root), resolveDir: root, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "browser"],
    target: "es2024",
    minify: true,
    keepNames: true,
    legalComments: "none",
    alias: Object.fromEntries(environmentExports(root)),
    plugins: [ownZod(root)],
    external: ["cloudflare:workers"],
    logLevel: "silent",
  });
  const text = outputFiles.map((file) => file.text).join("");
  return { text, digest: `sha256:${createHash("sha256").update(text).digest("hex")}` };
}

/** The schemas of an environment are those of the library's copy of zod. */
function ownZod(root: string): Plugin {
  return {
    name: "own copy of zod",
    setup({ onResolve, resolve }) {
      onResolve({ filter: /^zod(\/|$)/ }, ({ path, kind, resolveDir }) =>
        resolveDir === root ? undefined : resolve(path, { kind, resolveDir: root }),
      );
    },
  };
}

/** Methods of the prototype can be called by RPC. */
function entryModule(entry: string, root: string): string {
  return [
    'import { WorkerEntrypoint } from "cloudflare:workers";',
    'import { sha256 } from "@noble/hashes/sha2.js";',
    'import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";',
    `import { serveEnvironment } from ${JSON.stringify(join(root, "src/core/protocol/served.ts"))};`,
    `import { loadEnvironment } from ${JSON.stringify(entry)};`,
    "export default class Environment extends WorkerEntrypoint {}",
    "const hash = (text: string) => bytesToHex(sha256(utf8ToBytes(text)));",
    "Object.assign(Environment.prototype, serveEnvironment(loadEnvironment, hash));",
  ].join("\n");
}
