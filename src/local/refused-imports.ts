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

/** `importer`: the file that imports it. `target`: what the import leads to. */
export function refusedImport(name: string, importer: string, target = name): string {
  const what = target === name ? JSON.stringify(name) : `${JSON.stringify(name)}, which is ${JSON.stringify(target)}`;
  return `${importer} imports ${what}: an environment must not import modules of Node or Cloudflare`;
}

/** Marks a question of this plugin's own. */
const ASKED = Symbol();

/** Names the file and the line. What counts is what an import leads to: a package.json may give a module another name. */
export const refuseImports: Plugin = {
  name: "environments import no runtime",
  setup({ onResolve, resolve }) {
    onResolve({ filter: /.*/ }, async ({ path, importer, kind, resolveDir, with: attributes, pluginData }) => {
      if (pluginData === ASKED || kind === "entry-point") return undefined;
      if (isRefusedImport(path)) return { errors: [{ text: refusedImport(path, importer) }] };
      const found = await resolve(path, { kind, importer, resolveDir, with: attributes, pluginData: ASKED });
      // What does not resolve is told by the bundler in its own words.
      if (!found.external || !isRefusedImport(found.path)) return undefined;
      return { errors: [{ text: refusedImport(path, importer, found.path) }] };
    });
  },
};
