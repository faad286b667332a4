/** A state directory that is removed after the test. */
import { rmSync } from "node:fs";
import { onTestFinished } from "vitest";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";

export function temporaryDirectory(): string {
  const directory = makeThrowAwayDirectory();
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}
