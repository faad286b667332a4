/** Checks the pages about this repository: files they name exist, links have targets, and short pages stay short. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const PAGES = globSync(
  ["*.md", "docs/**/*.md", "src/**/README.md", "packages/**/README.md", "{environments/*,examples/**}/README.md"],
  {
    cwd: ROOT,
    exclude: ["**/node_modules/**"],
  },
).sort();
const MODULES = PAGES.filter((page) =>
  /^src\/(kernel\/[^/]+|accounts|backup|fleets|operator|retention|reviews|sharing|telemetry|triggers|webhooks)\/README\.md$/.test(
    page,
  ),
);

function read(page: string): string {
  return readFileSync(join(ROOT, page), "utf8");
}

/** The text without its code blocks, which show other folders. */
function prose(page: string): string {
  return read(page).replaceAll(/^```[\s\S]*?^```/gm, "");
}

/** `a/{b,c}.ts` is two files. */
function alternatives(path: string): string[] {
  const [whole, inner] = /\{([^}]*)\}/.exec(path) ?? [];
  if (whole === undefined || inner === undefined) return [path];
  return inner.split(",").flatMap((one) => alternatives(path.replace(whole, one)));
}

/** Paths in backticks that begin with a folder of this repository, or with one of src. */
function namedFiles(page: string): string[] {
  const named = [...prose(page).matchAll(/`([\w./{},-]+\/[\w./{},-]*)`/g)].map(([, path = ""]) => path);
  const tops = /^(src|test|packages|environments|scripts|bench|migrations|docs|bin)\//;
  const inSource = /^(contract|core|kernel|sdk|cli|local)\//;
  return named
    .filter((path) => tops.test(path) || inSource.test(path))
    .flatMap((path) => alternatives(inSource.test(path) ? `src/${path}` : path));
}

/** The anchors that GitHub makes of headings. */
function anchorsOf(page: string): string[] {
  const headings = [...prose(page).matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) => text);
  return headings.map((text) =>
    text
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-"),
  );
}

function brokenLinks(page: string): string[] {
  const links = [...prose(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => {
    const [path = "", anchor] = link.split("#", 2);
    const target = path === "" ? page : join(dirname(page), path);
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).includes(anchor);
  });
}

test.each(PAGES)("%s names files that exist", (page) => {
  expect(namedFiles(page).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test.each(PAGES)("the links of %s lead to an existing page and heading", (page) => {
  expect(brokenLinks(page)).toEqual([]);
});

test("each folder of the kernel and each slice describes itself in 5 to 15 lines, and names files that it has", () => {
  const modules = globSync(
    ["src/kernel/*/", "src/{accounts,backup,fleets,operator,retention,reviews,sharing,telemetry,triggers,webhooks}/"],
    {
      cwd: ROOT,
    },
  ).map((module) => basename(module));
  expect(MODULES.map((page) => basename(dirname(page))).sort()).toEqual(modules.sort());
  for (const page of MODULES) {
    const text = read(page).trim();
    expect(text.split("\n").length, page).toBeGreaterThanOrEqual(5);
    expect(text.split("\n").length, page).toBeLessThanOrEqual(15);
    const files = [...text.matchAll(/`([\w-]+\.ts)`/g)].map(([, file = ""]) => join(dirname(page), file));
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  }
});

test("AGENTS.md stays short: at most 80 lines of at most 120 columns", () => {
  const lines = read("AGENTS.md").trim().split("\n");
  expect(lines.length).toBeLessThanOrEqual(80);
  expect(lines.filter((line) => line.length > 120)).toEqual([]);
});

test("the environment in README is the one that `env init` writes", () => {
  for (const page of ["README.md", "docs/authoring.md"]) {
    const [, shown = ""] = /^```ts\n([\s\S]*?)^```/m.exec(read(page)) ?? [];
    expect(shown, page).not.toBe("");
    expect(read("src/cli/templates/single-turn/environment.ts"), page).toContain(shown);
  }
});
