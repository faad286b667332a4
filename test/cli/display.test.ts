import { expect, test } from "vitest";
import { Display } from "../../src/cli/terminal/display.ts";
import { terminal } from "../../src/cli/terminal/terminal.ts";
import { aRun } from "./a-run.ts";
import { Window } from "./a-window.ts";

function stage(isTTY: boolean, env: Record<string, string> = { NO_COLOR: "1" }) {
  const [stdout, stderr] = [new Window(isTTY), new Window(isTTY)];
  const exits: (() => void)[] = [];
  const around = { stdout, stderr, env, on: (_: "exit", exit: () => void) => exits.push(exit) };
  const term = terminal(false, around);
  let clock = 0;
  const display = new Display(term, () => clock);
  const at = (ms: number) => {
    clock = ms;
  };
  return { stdout, stderr, term, display, at, exit: () => exits[0]?.() };
}

const UP_ONE = "\x1b[1A\x1b[0J";

test("a line is drawn in place of the last one, and the cursor comes back when all runs have ended", () => {
  const { display, stderr, at } = stage(true);
  display.show(aRun({ pending: 10 }));
  const first = "calculator  ··········  0/10 · 0.500 ± 0.100 · 1,234 tokens\n";
  expect(stderr.taken()).toBe(`\x1b[?25l${first}`);
  at(10_000);
  display.show(aRun({ pending: 5, scored: 5 }));
  expect(stderr.taken()).toBe(`${UP_ONE}calculator  ███████······  5/10 · 0.500 ± 0.100 · 10 s left\n`);
  display.show(aRun({ scored: 10 }, { status: "completed", status_reason: null }));
  const last = stderr.taken();
  expect(last.startsWith(`${UP_ONE}calculator  ████`)).toBe(true);
  expect(last).toContain("  10/10 · 0.500 ± 0.100 · ");
  expect(last.endsWith("\n\x1b[?25h")).toBe(true);
  display.show(aRun({ scored: 10 }, { status: "completed", status_reason: null }));
  expect(stderr.taken()).toBe("");
});

test("a resized window gets its drawing again, and wrapped lines are erased", () => {
  const { display, stderr } = stage(true);
  display.show(aRun({ pending: 10 }));
  stderr.taken();
  stderr.resize(30);
  expect(stderr.taken()).toBe("\x1b[2A\x1b[0Jcalculat…  ············  0/10\n");
});

test("messages go above the drawing", () => {
  const { display, stderr, term } = stage(true);
  stderr.columns = 30;
  display.show(aRun({ pending: 10 }));
  stderr.taken();
  term.log("hello");
  expect(stderr.taken()).toBe(`${UP_ONE}hello\ncalculat…  ············  0/10\n`);
});

test("runs that do not fit on the screen are counted, and two of one environment are told apart", () => {
  const { display, stderr } = stage(true);
  stderr.rows = 4;
  for (const letter of "abcde") display.show(aRun({ pending: 10 }, { id: `run_${letter.repeat(8)}` }));
  const last = stderr.taken().split("\x1b[0J").at(-1)?.split("\n") ?? [];
  expect(last).toHaveLength(4);
  expect(last[0]).toMatch(/^calculator aaaaaa {2}·/);
  expect(last[2]).toBe("and 3 more runs");
});

test("however the process ends, the cursor comes back", () => {
  const { display, stderr, exit } = stage(true);
  display.show(aRun({ pending: 10 }));
  stderr.taken();
  exit();
  expect(stderr.taken()).toBe("\x1b[?25h");
});

test("without a terminal there is a plain line at every tenth and no escape code", () => {
  const { display, stderr, at } = stage(false, {});
  display.show(aRun({ pending: 10 }));
  at(4000);
  for (const scored of [1, 1, 4]) display.show(aRun({ pending: 10 - scored, scored }));
  expect(stderr.taken()).toBe(
    "calculator  1/10 rollouts · reward 0.500 ± 0.100 · 0 turns/s · 1,234 tokens · 36 s left\n" +
      "calculator  4/10 rollouts · reward 0.500 ± 0.100 · 0 turns/s · 1,234 tokens · 6 s left\n",
  );
});

test("without a terminal a waiting run says why, once", () => {
  const { display, stderr } = stage(false, {});
  const status_reason = { state: "over_budget", reason: "$0.01 is missing" } as const;
  for (let seen = 0; seen < 2; seen += 1) display.show(aRun({ pending: 10 }, { status_reason }));
  expect(stderr.taken()).toBe("calculator  over_budget: $0.01 is missing\n");
});

test("a dumb terminal gets plain lines, and NO_COLOR removes the colours", () => {
  const dumb = stage(true, { TERM: "dumb" });
  expect([dumb.term.live, dumb.term.colour]).toEqual([false, false]);
  const calm = stage(true, { NO_COLOR: "1" });
  expect([calm.term.live, calm.term.colour]).toEqual([true, false]);
  const bright = stage(true, {});
  bright.display.show(aRun({ scored: 1, pending: 9 }));
  expect([bright.term.colour, bright.stderr.taken().includes("\x1b[32m")]).toEqual([true, true]);
});
