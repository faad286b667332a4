/**
 * What code of environments, and of packages that it imports, may not import: modules of the runtime itself. Such code
 * runs beside everybody's rollouts, and they are the shortest ways out of it. This keeps honest code from them, and stops
 * none that means harm (docs/security.md).
 */
import { builtinModules } from "node:module";
import type { Plugin } from "esbuild";

const OF_A_RUNTIME = /^(node|cloudflare|workerd):/;
/** Leads to the global object (bundle.ts), which every environment has. */
const ALLOWED = ["process", "node:process"];

export function isRefusedImport(name: string): boolean {
  if (ALLOWED.includes(name)) return false;
  return OF_A_RUNTIME.test(name) || builtinModules.includes(name);
}

/** `importer`: the file that imports it. */
export function refusedImport(name: string, importer: string): string {
  return `${importer} imports ${JSON.stringify(name)}: an environment imports no module of Node or of Cloudflare`;
}

/** Names the file and the line. */
export const refuseImports: Plugin = {
  name: "environments import no runtime",
  setup({ onResolve }) {
    onResolve({ filter: /^[a-z_#]/ }, ({ path, importer }) => {
      return isRefusedImport(path) ? { errors: [{ text: refusedImport(path, importer) }] } : undefined;
    });
  },
};
