/**
 * Ends a test run with one plain line for programs, `N passed, N failed` (`, N skipped` if there were any). A file that
 * does not load and an error outside every test count as one failure each: a failed run never prints `0 failed`.
 */
import type { Reporter, SerializedError, TestModule } from "vitest/node";

export default class TotalsReporter implements Reporter {
  onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    reason: "passed" | "interrupted" | "failed",
  ): void {
    const states = modules.flatMap((module) => [...module.children.allTests()].map(stateOf));
    const count = (state: string) => states.filter((one) => one === state).length;
    const outside = modules.filter((module) => module.errors().length > 0).length + unhandled.length;
    const known = count("failed") + outside;
    const failed = known === 0 && reason !== "passed" ? 1 : known;
    const skipped = count("skipped") + count("pending");
    const tail = skipped > 0 ? `, ${skipped} skipped` : "";
    process.stdout.write(`\n${count("passed")} passed, ${failed} failed${tail}\n`);
  }
}

function stateOf(test: { result(): { state: string } }): string {
  return test.result().state;
}
