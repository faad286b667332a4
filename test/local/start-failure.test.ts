/** workerd's message about code that it does not start, mapped to the source files. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { afterEach, expect, test } from "vitest";
import { startFailure } from "../../src/local/miniflare.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "rollcall-start-failure-")));
const bundle = join(folder, "index.js");
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Why workerd does not start this module. */
async function refusalOf(module: string): Promise<string> {
  mkdirSync(join(folder, "mine"), { recursive: true });
  const entry = join(folder, "mine/environment.ts");
  writeFileSync(entry, module);
  await build({
    entryPoints: [entry],
    outfile: bundle,
    bundle: true,
    format: "esm",
    sourcemap: true,
  });
  const options = convertV4MiniflareOptions({
    modules: [{ type: "ESModule", path: bundle }],
    modulesRoot: folder,
    cf: false,
    log: new Log(LogLevel.NONE),
    handleStructuredLogs: () => {
      // The same words come back in the error.
    },
  });
  const miniflare = new Miniflare(options);
  const failed = miniflare.ready.then(
    () => "it starts",
    (error: unknown) => String(error),
  );
  const said = await failed;
  await Promise.allSettled([miniflare.dispose()]);
  return said;
}

test("code that a Worker refuses at its start is reported with its own line", async () => {
  const said = await refusalOf("export default {};\n\nexport const id = crypto.randomUUID();\n");
  expect(startFailure(said, bundle)).toMatch(new RegExp(`global scope.*\n  at ${folder}/mine/environment\\.ts:3:26$`));
});

test("an error that the code did not cause has no line", () => {
  expect(startFailure("The Workers runtime failed to start. Address in use.", bundle)).toBeNull();
});
