/**
 * A process that imports an environment's bundled module, says null or why it is refused, and ends. It may read the files
 * that it needs, and may neither write nor start anything (load-environment.ts), and sends no signals.
 *
 * Invariant. What it says begins with a word that its parent gave it on standard input. The word is read before the
 * module is imported, and no object that the module can reach holds it.
 */
import { readFileSync, writeSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import * as z from "zod";
import { NoEnvironmentPackage } from "./environment-package.ts";
import { importEnvironment } from "./import-environment.ts";

const ANSWERS = 3;

const [entry, file] = z.tuple([z.string(), z.string()]).parse(process.argv.slice(2));
const say = speaker(readFileSync(0, "utf8"));
refuseSignals();
try {
  await importEnvironment(entry, file);
  say(null);
} catch (thrown) {
  if (!(thrown instanceof NoEnvironmentPackage)) throw thrown;
  say(thrown.message);
}

/** The module may replace every global and method: what is needed after it is taken here, and no method of a text is called. */
function speaker(word: string): (refused: string | null) => void {
  const [write, toJson, { exit }] = [writeSync, JSON.stringify, process];
  return (refused) => {
    write(ANSWERS, `${word}${toJson(refused)}\n`);
    exit.call(process);
  };
}

/** `--permission` refuses no signals: the module could end its parent. */
function refuseSignals(): void {
  const refuse = () => {
    throw Object.assign(new Error("an environment must not send signals"), { code: "ERR_ACCESS_DENIED" });
  };
  Object.assign(process, { kill: refuse, _kill: refuse, _debugProcess: refuse });
  syncBuiltinESMExports();
}
