/** The package of Rollcall among the assets, of a checkout and of an installation. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import { afterAll, expect, test } from "vitest";
import { unpackFiles } from "../../src/cli/hub/package-files.ts";
import { addLibrary, bundleAssets, PACKED_LIST } from "../../src/local/assets.ts";
import { packFiles } from "../../src/local/pack-files.ts";

const base = mkdtempSync(join(tmpdir(), "rollcall-assets-"));
afterAll(() => rmSync(base, { recursive: true }));

const LIST = ["bin/rollcall.mjs", "dist/src/entry.js", "node_modules/@rollcall/policy/main.js", "package.json"];

const BIN = { rollcall: "bin/rollcall.mjs" };

/** An installed package, of which only the listed files are its own. */
function install(name: string, packageName = "rollcall"): { readonly root: string; readonly assets: string } {
  const root = join(base, name);
  const assets = join(root, "dist/web");
  const manifest = JSON.stringify({ name: packageName, version: "1.2.3", bin: BIN, dependencies: { zod: "4.6.7" } });
  const files = { ...Object.fromEntries(LIST.map((path) => [path, `// ${path}\n`])), "package.json": manifest };
  const others = { "dist/worker-options.json": "{}", "node_modules/zod/index.js": "", "dist/web/index.html": "<p>" };
  for (const [path, text] of Object.entries({ ...files, ...others, [PACKED_LIST]: [...LIST].join("\n") })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return { root, assets };
}

function libraryIn(assets: string) {
  const tarball = readFileSync(join(assets, "library/library.tgz"));
  return { tarball, listing: JSON.parse(readFileSync(join(assets, "library/library.json"), "utf8")) };
}

test("an installed package is packed from the files of its list, with the same bytes in every installation", async () => {
  const [one, other] = [install("one"), install("other")];
  for (const { root, assets } of [one, other]) await addLibrary(root, assets);
  const { tarball, listing } = libraryIn(one.assets);
  expect(libraryIn(other.assets).tarball.equals(tarball)).toBe(true);
  expect(listing).toMatchObject({
    manifest: { name: "rollcall", version: "1.2.3", dependencies: { zod: "4.6.7" } },
    integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
    shasum: createHash("sha1").update(tarball).digest("hex"),
  });
  const files = await unpackFiles(tarball);
  expect([...files.keys()].sort()).toEqual(LIST);
  expect(Buffer.from(files.get("bin/rollcall.mjs") ?? []).toString()).toBe("// bin/rollcall.mjs\n");
  const modes = (await unpackTar(gunzipSync(tarball))).map(({ header: { name, mode } }) => [name, mode]);
  expect(modes.filter(([, mode]) => mode === 0o755)).toEqual([["package/bin/rollcall.mjs", 0o755]]);
});

test("it is packed once for each version", async () => {
  const { root, assets } = install("again");
  await addLibrary(root, assets);
  const { tarball } = libraryIn(assets);
  const inode = () => statSync(join(assets, "library/library.tgz")).ino;
  const before = inode();
  writeFileSync(join(root, "bin/rollcall.mjs"), "// changed\n");
  await addLibrary(root, assets);
  expect(inode()).toBe(before);
  const manifest = readFileSync(join(root, "package.json"), "utf8");
  writeFileSync(join(root, "package.json"), manifest.replace("1.2.3", "1.2.4"));
  await addLibrary(root, assets);
  expect(libraryIn(assets).listing.manifest.version).toBe("1.2.4");
  expect(libraryIn(assets).tarball.equals(tarball)).toBe(false);
});

test("a checkout has the tarball of its version, and no package without one", async () => {
  const { root, assets } = install("checkout", "@acme/gym");
  rmSync(join(root, PACKED_LIST));
  await addLibrary(root, assets);
  expect(existsSync(join(assets, "library"))).toBe(false);
  const [older, newer] = await Promise.all(
    ["older", "newer"].map((text) =>
      packFiles(
        new Map([
          ["package.json", readFileSync(join(root, "package.json"))],
          ["main.js", Buffer.from(text)],
        ]),
      ),
    ),
  );
  const file = join(root, "dist/acme-gym-1.2.3.tgz");
  for (const tarball of [older, newer]) {
    writeFileSync(file, tarball ?? new Uint8Array());
    await addLibrary(root, assets);
    expect(libraryIn(assets).tarball.equals(tarball ?? new Uint8Array())).toBe(true);
    expect(libraryIn(assets).listing.manifest.name).toBe("@acme/gym");
  }
  rmSync(file);
  for (const _again of [1, 2]) {
    await addLibrary(root, assets);
    expect(readFileSync(join(assets, "library/library.json"), "utf8")).toBe("null");
    expect(existsSync(join(assets, "library/library.tgz"))).toBe(false);
  }
});

test("an installed package that lacks a file gives the page alone, and says why", async () => {
  const { root, assets } = install("damaged");
  rmSync(join(root, "dist/src/entry.js"));
  const said: string[] = [];
  expect(await bundleAssets(root, (line) => said.push(line))).toBe(assets);
  expect(said).toEqual([expect.stringMatching(/^npm clients do not get the package of Rollcall .*entry\.js/)]);
  expect(existsSync(join(assets, "library"))).toBe(false);
});
