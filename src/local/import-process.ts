/**
 * A process that imports an environment's bundled module, says null or why it is refused, and ends. It may read the files
 * that it needs, and may neither write nor start anything (load-environment.ts).
 */
import * as z from "zod";
import { NoEnvironmentPackage } from "./environment-package.ts";
import { importEnvironment } from "./import-environment.ts";

const [entry, file] = z.tuple([z.string(), z.string()]).parse(process.argv.slice(2));
const say = (refused: string | null) => process.send?.({ refused }, undefined, {}, () => process.exit());
try {
  await importEnvironment(entry, file);
  say(null);
} catch (thrown) {
  if (!(thrown instanceof NoEnvironmentPackage)) throw thrown;
  say(thrown.message);
}
