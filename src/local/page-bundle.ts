/**
 * Builds the page: src/web, bundled by esbuild into `dist/web`, which Workers static assets serve. It is built again
 * only when a source has changed: the file `.sources` next to it has the hash of its sources.
 *
 * Every file under `assets/` has the hash of its content in its name. A build adds files and moves `index.html` into
 * place last, so that an open page continues to work with the files that it names.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { DATA_PLACE } from "../contract/report-file.ts";
import { readIfThere } from "./directory-lock.ts";
import { hashFiles } from "./package-root.ts";

const SOURCES = [
  ...["src/{web,contract,sdk}/**/*", "src/*/wire{.ts,/**/*}"],
  ...["package-lock.json", "tsconfig.web.json", "src/local/page-bundle.ts"],
];
const ENTRY = "src/web/main.tsx";
const REPORT_ENTRY = "src/web/report-file.tsx";
/** The template of single-file reports, next to the served files. `reportTemplate` reads it. */
const REPORT = "report.txt";
/**
 * Read by the asset server, which makes browsers revalidate cached files. A longer lifetime would also apply to 404s,
 * and a file that is missing in one deployment comes back after a rollback.
 */
const HEADERS = `/assets/*
  X-Content-Type-Options: nosniff
  Cross-Origin-Resource-Policy: same-origin
`;

/** The parts of esbuild's metafile that are read here. */
interface Built {
  readonly outputs: Readonly<
    Record<
      string,
      {
        readonly entryPoint?: string;
        readonly cssBundle?: string;
        readonly imports: readonly { readonly path: string; readonly kind: string }[];
      }
    >
  >;
}

/** The folder of an up-to-date page. An installed package has no sources of the page and contains it already built. */
export async function bundlePage(root: string): Promise<string> {
  const folder = join(root, "dist", "web");
  if (!existsSync(join(root, ENTRY))) return folder;
  const hash = pageHash(root);
  if (readIfThere(join(folder, ".sources")) === hash && existsSync(join(folder, "index.html"))) return folder;
  // Built in a draft folder and moved into place: another command may be serving or building the page at the same time.
  const draft = join(root, "dist", `.web-${process.pid}`);
  mkdirSync(draft, { recursive: true });
  try {
    await build(root, draft);
    publish(draft, folder, hash);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return folder;
}

/** The hash of the page's sources. */
function pageHash(root: string): string {
  const files = globSync(SOURCES, { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
  return hashFiles(createHash("sha256"), root, files);
}

async function build(root: string, draft: string): Promise<void> {
  // Loaded only when needed: an up-to-date page does not need the bundler.
  const esbuild = await import("esbuild");
  const shared = {
    absWorkingDir: root,
    bundle: true,
    target: "es2022",
    minify: true,
    jsx: "automatic",
    tsconfig: "tsconfig.web.json",
    logLevel: "error",
  } as const;
  const define = { "process.env.NODE_ENV": '"production"' };
  const report = reportOf(
    await esbuild.build({
      ...shared,
      entryPoints: { report: REPORT_ENTRY },
      outdir: draft,
      format: "iife",
      write: false,
      define: { ...define, REPORT_TEMPLATE: '""' },
    }),
  );
  const template = `report-${createHash("sha256").update(report).digest("hex").slice(0, 8)}.txt`;
  const { metafile } = await esbuild.build({
    ...shared,
    entryPoints: { main: ENTRY },
    outdir: join(draft, "assets"),
    splitting: true,
    format: "esm",
    metafile: true,
    define: { ...define, REPORT_TEMPLATE: JSON.stringify(`/assets/${template}`) },
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    loader: { ".svg": "file" },
  });
  for (const file of [REPORT, join("assets", template)]) writeFileSync(join(draft, file), report);
  writeFileSync(join(draft, "index.html"), shellOf(metafile, relative(root, draft)));
  writeFileSync(join(draft, "_headers"), HEADERS);
  writeFileSync(join(draft, ".assetsignore"), `.sources\n.assetsignore\n${REPORT}\n`);
}

function publish(draft: string, folder: string, hash: string): void {
  const assets = join(folder, "assets");
  const current = new Set(readdirSync(join(draft, "assets")));
  mkdirSync(assets, { recursive: true });
  for (const name of current) renameSync(join(draft, "assets", name), join(assets, name));
  for (const name of ["_headers", ".assetsignore", REPORT, "index.html"])
    renameSync(join(draft, name), join(folder, name));
  writeFileSync(join(folder, ".sources"), hash);
  removeOld(assets, current);
}

/** Files of earlier builds are deleted after a day: by then no open page needs them, and all files are uploaded. */
const DAY_MS = 86_400_000;
function removeOld(assets: string, current: ReadonlySet<string>): void {
  for (const name of readdirSync(assets)) {
    const file = join(assets, name);
    if (!current.has(name) && Date.now() - statSync(file).mtimeMs > DAY_MS) rmSync(file, { force: true });
  }
}

/** The only HTML file. It names the entry, its static imports and the styles, and contains no script itself. */
function shellOf({ outputs }: Built, draft: string): string {
  const [file, entry] =
    Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === ENTRY) ??
    fail("the page's entry was not built");
  const url = (path: string) => `/${relative(draft, path)}`;
  const atOnce = entry.imports.flatMap(({ kind, path }) => (kind === "import-statement" ? [path] : []));
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    "<title>Rollcall</title>",
    ...(entry.cssBundle === undefined ? [] : [`<link rel="stylesheet" href="${url(entry.cssBundle)}">`]),
    ...atOnce.map((path) => `<link rel="modulepreload" href="${url(path)}">`),
    `<script type="module" src="${url(file)}"></script>`,
    "</head>",
    '<body><div id="root"></div><noscript>This page needs JavaScript.</noscript></body>',
    "</html>",
    "",
  ].join("\n");
}

/**
 * A single file that contains the program and the styles. Its policy lets a browser run this program and fetch nothing.
 */
function reportOf({
  outputFiles,
}: {
  readonly outputFiles: readonly { readonly path: string; readonly text: string }[];
}) {
  const textOf = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
  // Neither text may end its element.
  const script = textOf(".js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const style = textOf(".css").replaceAll("</style", "<\\/style");
  const hashOf = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; img-src data:`;
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    `<meta http-equiv="content-security-policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    "<title>Rollcall</title>",
    `<style>${style}</style>`,
    "</head>",
    `<body><div id="root"></div><script type="application/json" id="report">${DATA_PLACE}</script>`,
    `<script>${script}</script></body>`,
    "</html>",
    "",
  ].join("\n");
}

/** The template of a single-file report (contract/report-file.ts), from an up-to-date build. */
export async function reportTemplate(root: string): Promise<string> {
  return readFileSync(join(await bundlePage(root), REPORT), "utf8");
}

function fail(message: string): never {
  throw new Error(message);
}
