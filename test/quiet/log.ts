/** The Worker's log in tests: expected lines are not printed, and any other line of level error fails its file. */
import { afterAll } from "vitest";
import { judge } from "./expected-errors.ts";

const unexpected: string[] = [];
const { error } = console;
// Files share a worker: the previous file may have left its own function here, so that late lines between two files are
// quiet as well.
const before: unknown = Reflect.get(error, "print");
const print = typeof before === "function" ? before : error;

console.error = Object.assign(
  (...parts: unknown[]) => {
    const verdict = judge(parts[0]);
    if (verdict === "unexpected") unexpected.push(String(parts[0]));
    if (verdict !== "quiet") print.apply(console, parts);
  },
  { print },
);

afterAll(() => {
  if (unexpected.length > 0) {
    throw new Error(
      `no test expects these lines of the log (test/quiet/expected-errors.ts):\n${unexpected.join("\n")}`,
    );
  }
});
