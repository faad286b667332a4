import { expect, test } from "vitest";
import { type CommandSpec, helpText, nearest, readCommandLine } from "../../src/cli/command-line.ts";
import { COMMANDS, findCommand } from "../../src/cli/commands.ts";
import { asCommandError } from "../../src/cli/exit.ts";

const SPEC = {
  name: "thing do",
  takes: "<thing>",
  help: "does a thing",
  flags: {
    many: { short: "m", value: "N", repeatable: true, help: "how many" },
    count: { short: "n", value: "N", help: "how often" },
    kind: { value: "KIND", choices: ["a", "b"], help: "what kind" },
    on: { help: "a switch" },
    timeout: { value: "S", help: "how long" },
  },
} as const satisfies CommandSpec;

function refusal(read: () => unknown): string {
  try {
    read();
  } catch (thrown) {
    const { exit, message } = asCommandError(thrown);
    return `${exit}: ${message}`;
  }
  throw new Error("it was accepted");
}

test("flags are read by the table, and negative numbers are values", () => {
  const line = readCommandLine(SPEC, ["x", "-m", "1", "--many", "k=v", "-n", "-1", "--on"]);
  expect(line.one("a thing")).toBe("x");
  expect(line.all("many")).toEqual(["1", "k=v"]);
  expect([line.number("count"), line.on("on"), line.text("kind")]).toEqual([-1, true, undefined]);
  expect(line.timeoutMs("timeout")).toBeNull();
});

test.each([
  [["--no-such"], "2: --no-such is not a flag of thing do; npx rollcall thing do --help lists them"],
  [["--cuont", "3"], "2: --cuont is not a flag of thing do; did you mean: --count?"],
  [["-x"], "2: -x is not a flag of thing do"],
  [["-on"], "2: -o is not a flag of thing do"],
  [["--kind", "c"], "2: --kind: c is not one of a, b"],
])("%j is refused", (argv, message) => {
  expect(refusal(() => readCommandLine(SPEC, argv))).toContain(message);
});

test("values are checked where they are read, and the error names the flag", () => {
  const line = readCommandLine(SPEC, ["-n", "x", "-m", "novalue", "--timeout", "0", "a", "b"]);
  expect(refusal(() => line.number("count"))).toBe("2: --count: x is not a number");
  expect(refusal(() => line.pairs("many"))).toBe("2: --many: novalue is not k=v");
  expect(refusal(() => line.timeoutMs("timeout"))).toBe("2: --timeout: must be more than 0 seconds");
  expect(refusal(() => line.one("a thing"))).toBe("2: expected only a thing, not a, b");
  expect(refusal(() => line.none())).toContain("this command takes no arguments");
  const fraction = readCommandLine(SPEC, ["-n", "1.5"]);
  expect(refusal(() => fraction.count("count", 1))).toContain("must be a whole number of at least 1");
});

test("the help names every flag, its value and its choices", () => {
  expect(helpText(SPEC)).toBe(`Usage: rollcall thing do <thing> [flags]

does a thing

  -m, --many N                how many; repeatable
  -n, --count N               how often
      --kind KIND             what kind; one of a, b
      --on                    a switch
      --timeout S             how long
  -h, --help                  print this help
`);
});

test("the words of a command are found before its arguments, and no two flags share a letter", () => {
  expect(findCommand(["run", "list", "--json"])).toEqual(["run list", ["--json"]]);
  expect(findCommand(["eval", "run"])).toEqual(["eval", ["run"]]);
  expect(findCommand(["run"])).toBeNull();
  for (const { name, flags } of COMMANDS) {
    const letters = Object.values(flags).flatMap((flag) => ("short" in flag ? [flag.short] : []));
    expect(new Set(letters).size, name).toBe(letters.length);
  }
});

test("a near word is suggested, and a far one is not", () => {
  const names = ["eval", "serve", "endpoint", "env"];
  expect(nearest("evla", names)).toBe("eval");
  expect(nearest("endpiont", names)).toBe("endpoint");
  expect(nearest("frobnicate", names)).toBeNull();
});
