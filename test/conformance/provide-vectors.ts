/** Provides the vectors to the tests in either runtime: only Node can read the file. */
import type { TestProject } from "vitest/node";
import { readVectors, vectorsPath } from "./read-vectors.ts";
import type { VectorFile } from "./vector-file.ts";

declare module "vitest" {
  interface ProvidedContext {
    vectors: VectorFile;
  }
}

export default async function setup(project: TestProject): Promise<void> {
  project.provide("vectors", await readVectors(vectorsPath()));
}
