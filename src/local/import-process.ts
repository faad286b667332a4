/**
 * A process that imports an environment's bundled module, answers with null or the reason for refusing it, and exits.
 * It may read the files that it needs. It may not write, start anything (load-environment.ts) or send signals.
 *
 * Invariant. The answer starts with a word that the parent wrote to standard input. The word is read before the module
 * is imported, and no object that the module can reach holds it.
 */
import { readFileSync, writeSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import * as z from "zod";
import { NoEnvironmentPackage } from "./environment-package.ts";
import { importEnvironment } from "./import-environment.ts";

const ANSWERS = 3;

const [entry, file] = z.tuple([z.string(), z.string()]).parse(process.argv.slice(2));
const log = speaker(readFileSync(0, "utf8"));
refuseSignals();
try {
  await importEnvironment(entry, file);
  log(null);
} catch (thrown) {
  if (!(thrown instanceof NoEnvironmentPackage)) throw thrown;
  log(thrown.message);
}

/** The module may replace every global and method: what is needed later is taken here, and no string method is used. */
function speaker(word: string): (refused: string | null) => void {
  const [write, toJson, { exit }] = [writeSync, JSON.stringify, process];
  return (refused) => {
    write(ANSWERS, `${word}${toJson(refused)}\n`);
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
