/**
 * A process that imports an environment's bundled module, answers, and exits. The answer is the reason for refusing the
 * module, or null; and, if arguments were given, what the environment requires of a run with them.
 * It may read the files that it needs. It may not write, start anything (load-environment.ts) or send signals.
 *
 * Invariant. The answer starts with a word that the parent wrote to standard input. The word is read before the module
 * is imported, and no object that the module can reach holds it.
 */
import { readFileSync, writeSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import * as z from "zod";
import { messageOf } from "../contract/errors.ts";
import type { JsonObject } from "../contract/json.ts";
import { loadableOf } from "../core/protocol/in-process.ts";
import { argumentsWork } from "../core/rubrics/work.ts";
import { NoEnvironmentPackage } from "./environment-package.ts";
import type { Requirements } from "./environment-requirements.ts";
import { type EnvironmentModule, importEnvironment } from "./import-environment.ts";

const ANSWERS = 3;

const [entry, file, given] = z.tuple([z.string(), z.string(), z.string().optional()]).parse(process.argv.slice(2));
const log = speaker(readFileSync(0, "utf8"));
refuseSignals();
try {
  const module = await importEnvironment(entry, file);
  const required = given === undefined ? null : await requirementsOf(module, JSON.parse(given));
  log(null, JSON.stringify(required));
} catch (thrown) {
  if (!(thrown instanceof NoEnvironmentPackage)) throw thrown;
  log(thrown.message, "null");
}

async function requirementsOf({ loadEnvironment }: EnvironmentModule, args: JsonObject): Promise<Requirements> {
  const code = loadableOf(loadEnvironment);
  const fault = await code.checkArguments(args, argumentsWork());
  if (fault !== null) return { fault };
  try {
    const { judges, dataset, evalDataset } = (await code.load(args)).description;
    return { fault, judges, hasRows: [dataset, evalDataset].some((rows) => rows !== null && rows.kind !== "uploaded") };
  } catch (thrown) {
    return { fault, unbuilt: messageOf(thrown) };
  }
}

/**
 * The module may replace every global and method: what is needed later is taken here, and no string method is used. `required`
 * is JSON that the module may have changed: it is only advice.
 */
function speaker(word: string): (refused: string | null, required: string) => void {
  const [write, toJson, { exit }] = [writeSync, JSON.stringify, process];
  return (refused, required) => {
    write(ANSWERS, `${word}[${toJson(refused)},${toJson(required)}]\n`);
    exit.call(process);
  };
}

/** `--permission` does not forbid signals: the module could end its parent. */
function refuseSignals(): void {
  const refuse = () => {
    throw Object.assign(new Error("an environment must not send signals"), { code: "ERR_ACCESS_DENIED" });
  };
  Object.assign(process, { kill: refuse, _kill: refuse, _debugProcess: refuse });
  syncBuiltinESMExports();
}
