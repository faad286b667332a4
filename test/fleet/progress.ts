/** Prints a line for each case that ends: how many have ended, its name, and its duration. */
import type { Reporter, TestCase, TestModule } from "vitest/node";

export class Progress implements Reporter {
  #ended = 0;
  #all = 0;
  #began = Date.now();

  onTestModuleCollected(module: TestModule): void {
    // Cases that a name filter skips are only marked as skipped when they are reached.
    this.#all = [...module.children.allTests()].filter(({ options }) => options.mode === "run").length;
    this.#began = Date.now();
  }

  onTestCaseResult(one: TestCase): void {
    const { state, errors = [] } = one.result();
    if (state === "skipped") return;
    this.#ended += 1;
    const seconds = ((one.diagnostic()?.duration ?? 0) / 1000).toFixed(1);
    const since = Math.round((Date.now() - this.#began) / 1000);
    process.stdout.write(`${since} s  ${this.#ended} of ${this.#all}  ${state}  ${one.name}  (${seconds} s)\n`);
    for (const { message } of errors) process.stdout.write(`  ${message}\n`);
  }
}
