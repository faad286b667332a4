import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { bashScript, fishScript, zshScript } from "../../src/cli/commands/completion.ts";
import { COMMANDS } from "../../src/cli/commands.ts";

/** The completions of a real bash after these words; `rollcall` itself answers with two environments. */
function offered(...words: string[]): string[] {
  const script = `
rollcall() { [ "$*" = "completion --environments" ] && printf 'calculator\\ngsm8k\\n'; }
${bashScript(COMMANDS)}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_rollcall
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const options = { cwd: import.meta.dirname, encoding: "utf8" } as const;
  const said = execFileSync("bash", ["-c", script, "bash", "rollcall", ...words], options);
  return said.split("\n").filter((line) => line !== "");
}

test("bash completes commands, their verbs and their flags", () => {
  expect(offered("e")).toEqual(["eval", "endpoint", "env"]);
  const verbs = [
    "list",
    "show",
    "watch",
    "cancel",
    "pause",
    "resume",
    "update",
    "retry",
    "release-lost-calls",
    "audit",
  ];
  const more = ["rollouts", "results", "export", "share", "unshare", "delete", "reviews", "agreement"];
  expect(offered("run", "")).toEqual([...verbs, ...more]);
  expect(offered("run", "list", "--st")).toEqual(["--status"]);
  expect(offered("run", "list", "--json", "--l")).toEqual(["--limit"]);
  expect(offered("eval", "calculator", "--output")).toEqual(["--output-dir"]);
  expect(offered("nonsense", "")).not.toContain("list");
});

test("bash completes environments, the choices of a flag, shells and files", () => {
  expect(offered("eval", "g")).toEqual(["gsm8k"]);
  expect(offered("eval", "-m", "x", "")).toEqual(["calculator", "gsm8k"]);
  expect(offered("run", "list", "--status", "c")).toEqual(["completed", "cancelled"]);
  expect(offered("run", "list", "--environment", "c")).toEqual(["calculator"]);
  expect(offered("completion", "f")).toEqual(["fish"]);
  expect(offered("dataset", "push", "completion.t")).toEqual(["completion.test.ts"]);
  expect(offered("eval", "calculator", "-f", "completion.t")).toEqual(["completion.test.ts"]);
});

test("zsh runs bash's script, and fish has a line for every flag", () => {
  expect(zshScript(COMMANDS)).toContain("bashcompinit");
  expect(zshScript(COMMANDS)).toContain(bashScript(COMMANDS));
  const fish = fishScript(COMMANDS);
  const start = "complete -c rollcall -n '__fish_seen_subcommand_from run; and __fish_seen_subcommand_from list'";
  expect(fish).toContain(`${start} -l status -r -a 'queued running paused completed failed cancelled' -d`);
  const flags = COMMANDS.flatMap((command) => Object.keys(command.flags));
  expect(fish.match(/ -l /g)).toHaveLength(flags.length + COMMANDS.length);
  // An odd number of quotes would swallow the next line.
  for (const line of fish.split("\n")) {
    expect(line.replaceAll("\\'", "").split("'").length % 2, line).toBe(1);
  }
});
