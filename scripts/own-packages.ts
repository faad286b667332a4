/**
 * Writes the packages of packages/ in their installed form: compiled, with their data, without files for development.
 */
import { copyFileSync, cpSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod";

const Manifest = z.looseObject({
  name: z.string(),
  exports: z.record(z.string(), z.string()),
  dependencies: z.record(z.string(), z.string()).default({}),
});

export interface OwnPackage {
  readonly folder: string;
  readonly manifest: z.infer<typeof Manifest>;
}

/** Read by the compiled code, or by a person. */
const ASSETS = ["*.{wasm,bin}", "README.md"];

export function ownPackages(root: string): OwnPackage[] {
  return globSync("packages/*/package.json", { cwd: root })
    .sort()
    .map((file) => ({
      folder: join(root, dirname(file)),
      manifest: Manifest.parse(JSON.parse(readFileSync(join(root, file), "utf8"))),
    }));
}

/** `compiled` contains the root's folders, compiled. */
export function writePackage({ folder, manifest }: OwnPackage, compiled: string, to: string): void {
  const root = join(folder, "../..");
  cpSync(join(compiled, folder.slice(root.length)), to, { recursive: true });
  for (const asset of globSync(ASSETS, { cwd: folder })) copyFileSync(join(folder, asset), join(to, asset));
  copyFileSync(join(root, "LICENSE"), join(to, "LICENSE"));
  writeFileSync(join(to, "package.json"), `${JSON.stringify(installed(manifest), null, 2)}\n`);
}

/** Its exports point to the compiled files. */
function installed({
  private: _private,
  exports,
  dependencies: _dependencies,
  ...manifest
}: OwnPackage["manifest"]): object {
  const entries = Object.entries(exports).map(([entry, source]) => {
    const compiled = source.replace(/\.ts$/, "");
    return [entry, { types: `${compiled}.d.ts`, default: `${compiled}.js` }];
  });
  return { ...manifest, exports: { ...Object.fromEntries(entries), "./package.json": "./package.json" } };
}
