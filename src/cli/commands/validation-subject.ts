/** What `rollcall env validate` is called on: which package, its module, and what of its needs can be met here. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import type { Need } from "../../core/environments/contract.ts";
import type { Stage } from "../../core/validation/plays.ts";
import type { GoldPolicy } from "../../core/validation/policies.ts";
import {
  type EnvironmentPackage,
  environmentPackage,
  NoEnvironmentPackage,
  resolveEnvironmentPackage,
} from "../../local/environment-package.ts";
import type { EnvironmentModule } from "../../local/import-environment.ts";
import { loadEnvironmentModule } from "../../local/load-environment.ts";
import { PACKAGE_ROOT } from "../../local/package-root.ts";
import { readRows } from "../dataset-argument.ts";
import { usageError } from "../exit.ts";
import { onAnotherDay } from "./another-day.ts";

/** A folder, one of Rollcall's own environments, or an installed package. Throws a usage error. */
export function locate(reference: string): EnvironmentPackage {
  const own = join(PACKAGE_ROOT, "environments", reference);
  try {
    return /^[\w-]+$/.test(reference) && existsSync(join(own, "package.json"))
      ? environmentPackage(own)
      : resolveEnvironmentPackage(reference, process.cwd());
  } catch (thrown) {
    throw refused(thrown);
  }
}

export type Cast = Pick<Stage, "environment" | "twin" | "goldPolicy">;

/**
 * The environment, twice. Each time its module is loaded afresh, the second time as if on another day: what a module or an
 * instance keeps to itself is then not found again in the other, nor what it drew or read from the clock. Throws a usage error for arguments that do not fit, and what the environment throws.
 */
export async function cast(found: EnvironmentPackage, args: unknown): Promise<Cast> {
  const module = await loaded(found);
  return {
    environment: await built(module, args),
    twin: await onAnotherDay(async () => built(await loaded(found), args)),
    goldPolicy: goldPolicyOf(module),
  };
}

/** The rows for a dataset that has none of its own: of the file, else of examples.jsonl in the environment's folder. */
export function uploadedRows(
  found: EnvironmentPackage,
  environment: AnyEnvironment,
  file: string | undefined,
): readonly unknown[] {
  if (environment.dataset.kind !== "uploaded") {
    if (file === undefined) return [];
    throw usageError(`--dataset: ${found.id} has rows of its own`, "dataset");
  }
  const beside = join(found.folder, "examples.jsonl");
  if (file !== undefined) return readRows(file);
  if (existsSync(beside)) return readRows(beside);
  throw usageError(`${found.id} has no rows of its own: give some with --dataset`, "dataset");
}

/** The outside world of this process; secrets stand in environment variables of their names. */
export const CAPABILITIES: Stage["capabilities"] = {
  fetch: async (url, init) => {
    const response = await fetch(url, init);
    const { status, headers } = response;
    return { status, headers, text: () => response.text() };
  },
  secret: (name) => process.env[name] ?? "",
};

/** Every play gets a database of its own. */
export const openSqlite = () => new DatabaseSync(":memory:");

/** A sentence for each need that is not met here. */
export function unmetNeeds(needs: readonly Need[]): string[] {
  return needs.flatMap((need) => {
    const secret = /^secret:(.+)$/.exec(need)?.[1];
    if (secret === undefined || process.env[secret]) return [];
    return `${need} is read from the environment variable ${secret} here: set it and try again`;
  });
}

async function loaded(found: EnvironmentPackage): Promise<EnvironmentModule> {
  try {
    return await loadEnvironmentModule(found);
  } catch (thrown) {
    throw refused(thrown);
  }
}

async function built({ loadEnvironment }: EnvironmentModule, args: unknown) {
  const checked = loadEnvironment.args.safeParse(args);
  if (!checked.success) throw usageError(`--args: ${z.prettifyError(checked.error)}`, "args");
  return await loadEnvironment.load(args);
}

function goldPolicyOf({ exports }: EnvironmentModule): GoldPolicy | null {
  const policy = exports["goldPolicy"];
  if (policy === undefined) return null;
  if (isGoldPolicy(policy)) return policy;
  throw usageError("goldPolicy must be a function of a task that returns replies, or a model");
}

/** What it returns is seen when it is played. */
function isGoldPolicy(policy: unknown): policy is GoldPolicy {
  return typeof policy === "function";
}

/** What is to be thrown instead. */
function refused(thrown: unknown): unknown {
  return thrown instanceof NoEnvironmentPackage ? usageError(thrown.message) : thrown;
}
