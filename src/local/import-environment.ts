/** Imports an environment's bundled module into this thread, without loading the bundler. */
import { pathToFileURL } from "node:url";
import type * as z from "zod";
import type { EnvironmentLoader } from "../core/environments/define-environment.ts";
import { NoEnvironmentPackage } from "./environment-package.ts";

export interface EnvironmentModule {
  readonly loadEnvironment: EnvironmentLoader<z.ZodObject>;
  /** The module's other exports. */
  readonly exports: Readonly<Record<string, unknown>>;
}

/** `entry`: the author's file, for messages. Throws NoEnvironmentPackage if it throws or is not an environment. */
export async function importEnvironment(entry: string, file: string): Promise<EnvironmentModule> {
  const loaded = await importModule(entry, file);
  const loader = loaded["loadEnvironment"];
  if (!isLoader(loader)) {
    throw new NoEnvironmentPackage(`${entry} must export loadEnvironment, created with defineEnvironment`);
  }
  return { loadEnvironment: loader, exports: loaded };
}

async function importModule(entry: string, file: string): Promise<Record<string, unknown>> {
  // The stack of an error in a hook then names the author's file.
  process.setSourceMapsEnabled(true);
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    const why = error instanceof Error ? ownStack(error) : String(error);
    throw new NoEnvironmentPackage(`${entry} throws an error while loading: ${why}`, { cause: error });
  }
}

/** The message and the author's part of the stack, which ends where Node ran the module. */
function ownStack({ message, stack = message }: Error): string {
  const lines = stack.split("\n");
  const ours = lines.findIndex((line) => /^\s+at .*\bnode:internal\/(modules|process)\//.test(line));
  return lines.slice(0, ours < 0 ? undefined : ours).join("\n");
}

function isLoader(value: unknown): value is EnvironmentLoader<z.ZodObject> {
  return typeof value === "function" && "load" in value && "args" in value && "needs" in value;
}
