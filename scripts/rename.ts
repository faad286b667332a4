/**
 * `npm run rename -- NAME`: gives the product another package name. Code reads the name from package.json. This script
 * replaces it there and in the places that no code can compute: import statements, the dependencies of environments and
 * packages, the lockfile, and the exports that documentation names.
 *
 * The command, and the key by which an environment's package.json names its module, stay `rollcall`.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import manifest from "../package.json" with { type: "json" };

const ROOT = resolve(import.meta.dirname, "..");
const FILES = [
  "{bench,docs,environments,examples,packages,scripts,src,test}/**/*.{ts,tsx,mjs,json,md}",
  "*.{ts,json,md}",
];
const LEGAL = /^(?:@[a-z0-9-][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/;

function main([name = "", ...more]: readonly string[]): void {
  if (!LEGAL.test(name) || more.length > 0) throw new Error("name the package: npm run rename -- NAME");
  const rules = rulesFrom(manifest.name);
  const files = globSync(FILES, { cwd: ROOT, exclude: ["**/node_modules", "**/dist"] });
  for (const file of files) {
    const text = readFileSync(join(ROOT, file), "utf8");
    const renamed = rules.reduce((so, rule) => so.replace(rule, `$<before>${name}`), text);
    if (renamed !== text) writeFileSync(join(ROOT, file), renamed);
  }
  process.stdout.write("Now: node scripts/install.mjs && npm run generate && npm run check -- --fix\n");
}

/** Each pattern keeps the text before the name; the text after it is not part of the match. */
function rulesFrom(name: string): RegExp[] {
  const [old, published] = [name, manifest.publishedAs].map((one) => one.replaceAll(/[/.]/g, "\\$&"));
  const entries = Object.keys(manifest.exports).flatMap((entry) => (entry === "." ? [] : [entry.slice(1)]));
  return [
    `(?<before>\\b(?:from |import |import\\()["'])${old}(?=["'/])`,
    `(?<before>"(?:node_modules/)?)${old}(?=": (?:"file:|\\{\\s+"resolved"))`,
    `(?<before>^ {2,6}"name": ")${old}(?=",$)`,
    `(?<before>^ {2}"publishedAs": ")${published}(?=",$)`,
    `(?<before>\`)${old}(?=(?:${entries.join("|")})[\`/])`,
  ].map((rule) => new RegExp(rule, "gm"));
}

main(process.argv.slice(2));
