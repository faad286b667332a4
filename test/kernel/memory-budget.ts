/** Tests that use up the memory of the isolate set its total. */
import { env } from "cloudflare:workers";
import { afterAll, beforeAll } from "vitest";
import { isolateMemory } from "../../src/kernel/kit/isolate-memory.ts";

export const MEMORY = isolateMemory(env);

/** The total, in bytes, for the tests of this file. src/kernel/kit/isolate-memory.ts says how it is divided. */
export function useMemory(bytes: number): void {
  const { total } = MEMORY;
  beforeAll(() => {
    MEMORY.total = bytes;
  });
  afterAll(() => {
    MEMORY.total = total;
  });
}
