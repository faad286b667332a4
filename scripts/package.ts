/**
 * Makes what is published, and prints the path of the tarball. For Rollcall it makes dist/package and, from it,
 * dist/rollcall-rollcall-<version>.tgz; for an independent package of packages/, a folder in dist and a tarball.
 *
 * Node strips no types inside node_modules, so everything that runs in Node is compiled, from src/ to dist/src:
 * relative paths between modules stay the same. The packages of packages/ are included compiled, bundled under
 * node_modules. The Worker's sources are included uncompiled, because it is bundled again if there are environments
 * that do not come with Rollcall; otherwise the bundle that is made here is used.
 *
 * node scripts/package.ts [--out DIR] [--only math-equivalence]
 */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import manifest from "../package.json" with { type: "json" };
import { LIBRARY_FOLDER } from "../src/contract/library-file.ts";
import { PACKED_LIST } from "../src/local/assets.ts";
import { bundleWorker } from "../src/local/bundle.ts";
import { sourcesHash } from "../src/local/package-root.ts";
import { bundlePage } from "../src/local/page-bundle.ts";
import node from "./node/package.json" with { type: "json" };
import { type OwnPackage, ownPackages, writePackage } from "./own-packages.ts";

const ROOT = resolve(import.meta.dirname, "..");

/** The sources of the Worker's bundle, and files for people. */
const COPIED = [
  ...["bin", "docs", "environments", "migrations", "src"],
  // The bindings the Worker was compiled against: `rollcall deploy check` compares them with the deployed ones.
  ...["wrangler.toml", "worker-configuration.d.ts"],
  ...["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"],
];
/** Folders whose compiled form is used: they run only in Node. */
const NOT_COPIED = /([/\\]node_modules|[/\\]src[/\\](cli|local|sdk|web)|\.test\.ts|env\.d\.ts)$/;

/** Dependencies that only the page has. It is published already built. */
const OF_THE_PAGE = /^(@tanstack\/|react|rehype-|remark-|uplot$)/;

/** An import of the product by name: the text before it, its quote and the name. */
const IMPORTED = new RegExp(`(\\bfrom |\\bimport\\()(["'])(${manifest.name}(?:/[^"']*)?)\\2`, "g");

/** Files that the compiled code reads: data, and the files of a new environment. */
const ASSETS = ["src/{cli,local}/**/*.{wasm,bin,json,jsonl,md,txt}", "src/cli/templates/**/{*,.*}"];

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { out: { type: "string", default: "dist" }, only: { type: "string" } } });
  const out = resolve(ROOT, values.out);
  const packages = ownPackages(ROOT);
  const compiled = mkdtempSync(join(tmpdir(), "rollcall-compiled-"));
  try {
    compile(compiled);
    const folder = values.only === undefined ? join(out, "package") : join(out, values.only);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    if (values.only === undefined) await fillProduct(folder, compiled, packages);
    else writePackage(packageNamed(values.only, packages), compiled, folder);
    process.stdout.write(`${pack(folder, out)}\n`);
  } finally {
    rmSync(compiled, { recursive: true });
  }
}

/** A package is independent only if it imports no other. */
function packageNamed(name: string, packages: readonly OwnPackage[]): OwnPackage {
  const alone = packages.filter(({ manifest: { dependencies } }) => Object.keys(dependencies).length === 0);
  const found = alone.find(({ folder }) => basename(folder) === name);
  if (found !== undefined) return found;
  throw new Error(
    `--only: packages that stand by themselves are ${alone.map(({ folder }) => basename(folder)).join(", ")}`,
  );
}

function compile(to: string): void {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const args = [tsc, "-p", "tsconfig.package.json", "--outDir", to];
  execFileSync(process.execPath, args, { cwd: ROOT, stdio: ["ignore", 2, 2] });
}

async function fillProduct(folder: string, compiled: string, packages: readonly OwnPackage[]): Promise<void> {
  cpSync(join(compiled, "src"), join(folder, "dist/src"), { recursive: true });
  copySources(folder);
  for (const one of packages) {
    const to = join(folder, "node_modules", one.manifest.name);
    writePackage(one, compiled, to);
    linkToProduct(to, folder);
  }
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(published(packages), null, 2)}\n`);
  await addBundle(folder);
  writeList(folder);
}

/**
 * The bundled packages import the product by its relative path, because its name is what whoever installs it chooses:
 * npm may put it at `node_modules/rollcall` or under its published name.
 */
function linkToProduct(own: string, folder: string): void {
  const entries = compiledEntries();
  for (const file of globSync("**/*.{js,d.ts}", { cwd: own }).map((path) => join(own, path))) {
    const text = readFileSync(file, "utf8").replace(IMPORTED, (_, before: string, quote: string, name: string) => {
      const entry = entries.get(`.${name.slice(manifest.name.length)}`);
      if (entry === undefined) throw new Error(`${file}: ${name} is not exported`);
      return `${before}${quote}${relative(dirname(file), join(folder, entry))}.js${quote}`;
    });
    writeFileSync(file, text);
  }
}

/** The files of the exports after compilation, without extension. */
function compiledEntries(): ReadonlyMap<string, string> {
  const compiledOf = (source: string) => source.replace("./src/", "./dist/src/").replace(/\.ts$/, "");
  return new Map(Object.entries(manifest.exports).map(([entry, source]) => [entry, compiledOf(source)]));
}

function copySources(folder: string): void {
  for (const path of COPIED) {
    const filter = (from: string) => !NOT_COPIED.test(from);
    cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter });
  }
  const assets = globSync(ASSETS, { cwd: ROOT, withFileTypes: true }).filter((it) => it.isFile());
  for (const asset of assets) {
    const from = join(asset.parentPath, asset.name);
    const to = join(folder, "dist", from.slice(ROOT.length));
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(from, to);
  }
}

/**
 * The root's package.json without the parts for development, with exports that point to the compiled files. It also
 * lists the dependencies of the bundled packages, because not every installer reads their own lists.
 */
function published(packages: readonly OwnPackage[]): object {
  const { name, publishedAs, version, description, license, type, sideEffects, engines, bin } = manifest;
  const entries = [...compiledEntries()].map(([entry, compiled]) => {
    return [entry, { types: `${compiled}.d.ts`, default: `${compiled}.js` }];
  });
  const theirs = Object.assign({}, ...packages.map(({ manifest: { dependencies } }) => dependencies));
  const { [name]: _own, ...all } = { ...theirs, ...manifest.dependencies };
  const dependencies = Object.fromEntries(Object.entries(all).filter(([dependency]) => !OF_THE_PAGE.test(dependency)));
  return {
    ...{ name: publishedAs, importedAs: name, version, description, license, type, sideEffects, engines, bin },
    exports: { ...Object.fromEntries(entries), "./package.json": "./package.json" },
    files: [...COPIED, "dist"],
    // wrangler.toml runs this script before each upload; in the published package the page is already built.
    scripts: { "build:page": "node -e 0" },
    dependencies,
    optionalDependencies: node.optionalDependencies,
    bundleDependencies: packages.map((one) => one.manifest.name),
  };
}

async function addBundle(folder: string): Promise<void> {
  copyFileSync(await bundleWorker(ROOT), join(folder, "dist", "index.js"));
  const isOfPage = (from: string) => basename(from) !== LIBRARY_FOLDER;
  cpSync(await bundlePage(ROOT), join(folder, "dist", "web"), { recursive: true, filter: isOfPage });
  writeFileSync(join(folder, "dist", ".sources"), sourcesHash(folder));
}

/** An installed package packs itself again from these files, for the npm clients of its platform. */
function writeList(folder: string): void {
  writeFileSync(join(folder, PACKED_LIST), "");
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((it) => it.isFile());
  const paths = files.map((it) => relative(folder, join(it.parentPath, it.name)));
  writeFileSync(join(folder, PACKED_LIST), paths.sort().join("\n"));
}

function pack(folder: string, out: string): string {
  const args = ["pack", "--silent", "--pack-destination", out];
  const said = execFileSync("npm", args, { cwd: folder, encoding: "utf8" });
  return join(out, basename(said.trim()));
}

await main();
