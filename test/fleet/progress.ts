/** A line for each case as it ends: how many have, which one, and how long it took. */
import type { Reporter, TestCase, TestModule } from "vitest/node";

export class Progress implements Reporter {
  #ended = 0;
  #all = 0;
  #began = Date.now();

  onTestModuleCollected(module: TestModule): void {
    // Those that a name leaves out say so only once they are reached.
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
