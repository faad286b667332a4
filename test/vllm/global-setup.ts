/**
 * Runs before the suite, in the runner's own process, so that its progress is visible: installs a Python with vLLM, and
 * a model for it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { findPython, installVllm, log, run, venvFolder } from "./scratch-venv.ts";

/** Paths. */
export interface Vllm {
  /** The programs of its Python. */
  readonly bin: string;
  /** A model that it can serve. */
  readonly model: string;
  /** Removed at the end. */
  readonly folder: string;
}

declare module "vitest" {
  interface ProvidedContext {
    /** Null without a suitable Python. */
    vllm: Vllm | null;
  }
}

export default function setUp(project: TestProject): (() => void) | undefined {
  const python = findPython();
  if (typeof python === "string") {
    log(`skipped: ${python}`);
    project.provide("vllm", null);
    return undefined;
  }
  const bin = installVllm(python.command, venvFolder());
  const folder = mkdtempSync(join(tmpdir(), "rollcall-vllm-"));
  const model = join(folder, "model");
  const made = run(join(bin, "python"), [join(import.meta.dirname, "model.py"), model]);
  log(`made a model: ${made}`);
  project.provide("vllm", { bin, model, folder });
  return () => rmSync(folder, { recursive: true, force: true });
}
