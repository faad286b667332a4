/**
 * Which modules the code of environments, and of packages that they import, may not import: modules of the runtime
 * itself. This code runs in the same isolate as other rollouts, and those modules are the shortest ways out of it. The
 * check protects against mistakes, and does not stop malicious code (docs/security.md).
 */
import { builtinModules } from "node:module";
import type { Plugin } from "esbuild";

const OF_A_RUNTIME = /^(node|cloudflare|workerd):/;
/** Resolves to the global object (bundle.ts), which every environment has anyway. */
const ALLOWED = ["process", "node:process"];

export function isRefusedImport(name: string): boolean {
  if (ALLOWED.includes(name)) return false;
  return OF_A_RUNTIME.test(name) || builtinModules.includes(name);
}

/** `importer`: the importing file. `target`: the module that the import resolves to. */
export function refusedImport(name: string, importer: string, target = name): string {
  const what = target === name ? JSON.stringify(name) : `${JSON.stringify(name)}, which is ${JSON.stringify(target)}`;
  return `${importer} imports ${what}: an environment must not import modules of Node or Cloudflare`;
}

/** Marks resolve calls that this plugin makes itself. */
const ASKED = Symbol();

/** The error names the file and the line. The resolved module counts: a package.json may give a module another name. */
export const refuseImports: Plugin = {
  name: "environments import no runtime",
  setup({ onResolve, resolve }) {
    onResolve({ filter: /.*/ }, async ({ path, importer, kind, resolveDir, with: attributes, pluginData }) => {
      if (pluginData === ASKED || kind === "entry-point") return undefined;
      if (isRefusedImport(path)) return { errors: [{ text: refusedImport(path, importer) }] };
      const found = await resolve(path, { kind, importer, resolveDir, with: attributes, pluginData: ASKED });
      // The bundler itself reports an import that does not resolve.
      if (!found.external || !isRefusedImport(found.path)) return undefined;
      return { errors: [{ text: refusedImport(path, importer, found.path) }] };
    });
  },
};
