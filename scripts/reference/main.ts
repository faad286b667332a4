/**
 * Writes docs/reference: api.md from the OpenAPI document, commands.md from the output of `--help`. docs/api.md and
 * docs/commands.md have the rest, written by hand.
 *
 * node scripts/reference/main.ts [--check]
 *   --check writes nothing and exits with 1 if a page is out of date
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { COMMANDS } from "../../src/cli/commands.ts";
import { openApiOf } from "../../src/kernel/http/openapi/openapi.ts";
import { OPERATIONS } from "../../src/slices.ts";
import { apiReference } from "./api.ts";
import { commandReference } from "./commands.ts";

const FOLDER = resolve(import.meta.dirname, "../../docs/reference");

function main(): number {
  const { values } = parseArgs({ options: { check: { type: "boolean", default: false } } });
  const pages = { "api.md": apiReference(openApiOf(OPERATIONS)), "commands.md": commandReference(COMMANDS) };
  const stale = Object.entries(pages).filter(([name, page]) => {
    const file = join(FOLDER, name);
    return !existsSync(file) || readFileSync(file, "utf8") !== page;
  });
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, page] of stale) {
    if (values.check) process.stderr.write(`docs/reference/${name} is stale: npm run generate\n`);
    else writeFileSync(join(FOLDER, name), page);
  }
  return values.check && stale.length > 0 ? 1 : 0;
}

process.exitCode = main();
