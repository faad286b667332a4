/**
 * Fails where a text of the tree has a phrase that docs/style.md rules out, and names file, line and what to write
 * instead. A line is excused by a comment on it: `style-ok: reason`.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");
/** The pages of the root. CHANGELOG.md quotes texts of earlier versions. */
const PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md"];
const FOLDERS = ["src", "docs", "packages", "environments", "test", ...PAGES];
const TEXT = /\.(?:tsx?|md)$/;
/** The files that quote the phrases. */
const QUOTES = new Set(["docs/style.md", "test/ground/style.test.ts"]);

const PHRASES: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\bof before (?!of\b)(?=\w)/, "say from when: runs created before 0.2"],
  [/\bas many as may\b/, "name the maximum"],
  [/\b(?:is|are) not asked\b(?! for| about)/, "is not called, is not sent"],
  [/\bsays? nothing of\b/, "has no …, says nothing about"],
  [/\b(?:is|are) no \w+ of ours\b/, "is not one of our …"],
  [/\b[Ww]hat (?:\w+ ){1,4}(?:comes|came) to\b/, "the result, the sum, the size of …"],
  [/\bof the page before\b/, "of the previous page"],
  [/\bgoes on by itself\b/, "continues by itself"],
  [/\bis said here\b/, "is shown here, is checked here"],
  [/\bearlier try\b/, "earlier attempt"],
  [/\bmay no more\b/, "may no longer"],
  [/\basked for anew\b/, "requested again"],
  [/\blost its right\b/, "lost its permission"],
  [/: not beside --/, "cannot be combined with --"],
  [/\bwith commas between them\b/, "separated by commas"],
  [/\bleads elsewhere\b/, "redirects"],
  [/\bname what is to change\b/, "set at least one flag to change"],
  [/\bdid not settle within\b/, "did not finish within"],
  [/\bis no flag of\b/, "is not a flag of"],
];

/** One line for each phrase in `text`. */
export function findDialect(file: string, text: string): string[] {
  return text.split("\n").flatMap((line, at) => {
    if (line.includes("style-ok:")) return [];
    const found = PHRASES.filter(([phrase]) => phrase.test(line));
    return found.map(([phrase, instead]) => `${file}:${at + 1}: ${phrase.exec(line)?.[0]} → ${instead}`);
  });
}

function filesOfTree(): string[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", ...FOLDERS], {
    cwd: ROOT,
    encoding: "utf8",
  });
  const files = listed.split("\n").filter((file) => TEXT.test(file) && !QUOTES.has(file));
  return files.filter((file) => existsSync(resolve(ROOT, file)));
}

if (import.meta.main) {
  const found = filesOfTree().flatMap((file) => findDialect(file, readFileSync(resolve(ROOT, file), "utf8")));
  if (found.length > 0) {
    process.stderr.write(`${found.join("\n")}\nHow to write: docs/style.md\n`);
    process.exitCode = 1;
  }
}
