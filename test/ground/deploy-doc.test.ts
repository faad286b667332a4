/**
 * docs/deploy.md and docs/operations.md against wrangler itself, wrangler.toml and docs/cost.md: every command for the
 * reader must exist.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { experimental_getWranglerCommands as wranglerCommands } from "wrangler";
import manifest from "../../package.json" with { type: "json" };
import { readDeployment } from "../../src/local/deployment.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const read = (page: string) => readFileSync(join(ROOT, "docs", page), "utf8");
/** Every `npx wrangler …` of a code block or a sentence, without what follows it. */
const COMMANDS = ["deploy.md", "operations.md"].flatMap((page) => {
  return Array.from(read(page).matchAll(/npx wrangler ([^`\n|>]+)/g), ([, words = ""]) => words.trim());
});

/** wrangler's commands: the subcommands of a word, and the flags of a command. */
interface Commands {
  readonly subtree: ReadonlyMap<string, Commands>;
  readonly definition?: { readonly type: string; readonly args?: Readonly<Record<string, unknown>> };
}

/** Long flags; -c is the short form of --config. */
function flagsOf(line: string): string[] {
  const long = line.match(/(?<=--)[a-z][a-z-]*/g) ?? [];
  return / -c /.test(line) ? [...long, "config"] : long;
}

test("every wrangler command that the pages name exists in the installed wrangler, with its flags", () => {
  const { registry, globalFlags } = wranglerCommands();
  expect(COMMANDS.length).toBeGreaterThan(10);
  for (const line of COMMANDS) {
    let at: Commands = registry;
    for (const word of line.split(" ")) at = at.subtree.get(word) ?? at;
    expect(at.definition?.type, line).toBe("command");
    const known = [...Object.keys(at.definition?.args ?? {}), ...Object.keys(globalFlags)];
    expect(known, line).toEqual(expect.arrayContaining(flagsOf(line)));
  }
});

test("the monthly cost is computed from the tables of docs/cost.md", () => {
  const [, table = ""] =
    /### Trajectories over 32 KiB, `max_concurrent` 128\n([\s\S]*?)\n###? /.exec(read("cost.md")) ?? [];
  const counts = new Map(
    table.split("\n").map((line) => {
      const cells = line.split("|").map((cell) => cell.trim());
      return [cells[1] ?? "", cells[5] ?? ""];
    }),
  );
  const LINES = {
    "GB-s of objects": ["GB-s of objects that play rollouts", "GB-s of the run's object"],
    "requests to objects": [
      "requests to objects that play rollouts",
      "requests to the run's object",
      "requests to the endpoint's object",
    ],
    "rows written by objects, alarms": [
      "rows written by rollouts",
      "rows written by the run",
      "rows written by the endpoint",
      "alarms set (a row each)",
    ],
    "operations of queues": ["queue operations"],
    "R2 writes": ["R2 writes (class A)"],
    "rows written in D1": ["rows written in D1"],
  };
  for (const [what, of] of Object.entries(LINES)) {
    const row =
      read("deploy.md")
        .split("\n")
        .find((line) => line.startsWith(`| ${what} |`)) ?? "";
    const [included = 0, , within = 0] = row
      .split("|")
      .slice(2, 5)
      .map((cell) => Number(cell.replaceAll(/[^\d]/g, "")));
    const each = of.map((name) => counts.get(name) ?? "");
    expect(row, what).toContain(` ${each.join(" + ")} |`);
    const sum = each.reduce((total, count) => total + Number(count.replaceAll(",", "")), 0);
    expect(Math.abs((included / sum) * 1000 - within), what).toBeLessThan(1000);
  }
});

test("the button has a secret to ask for and a description of each variable, and wrangler can create every queue", async () => {
  const { vars, secrets, queues, bindings } = await readDeployment(join(ROOT, "wrangler.toml"));
  const example = readFileSync(join(ROOT, ".dev.vars.example"), "utf8");
  const asked = Array.from(example.matchAll(/^(\w+)=/gm), ([, name = ""]) => name);
  expect(asked).toEqual([...(secrets?.required ?? []), "ROLLCALL_BOOTSTRAP_TOKEN"]);
  const described = Object.keys(manifest.cloudflare.bindings);
  expect(described).toEqual(expect.arrayContaining([...asked, ...Object.keys(vars)]));
  expect(described.filter((name) => !asked.includes(name) && bindings[name] === undefined)).toEqual([]);
  // It looks for the queues of consumers before it creates those of producers.
  const produced = queues.producers?.map(({ queue }) => queue).sort();
  expect(produced).toEqual(queues.consumers?.map(({ queue }) => queue).sort());
});
