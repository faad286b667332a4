/** Where this Rollcall stands, in a checkout and where it was installed from a package. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The folder of package.json and wrangler.toml. What is compiled from the sources stands deeper below it than they do. */
export const PACKAGE_ROOT = nearestPackage(import.meta.dirname);

function nearestPackage(folder: string): string {
  return existsSync(join(folder, "package.json")) ? folder : nearestPackage(dirname(folder));
}

export function rollcallVersion(root: string = PACKAGE_ROOT): string {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
}
