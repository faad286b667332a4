/**
 * Builds what browsers load: src/web, bundled by esbuild into `dist/web`, which Workers static assets serve. It is built
 * again only when a source has changed; the file `.sources` beside it holds the hash of what it was built from.
 *
 * Every file under `assets/` has its content's hash in its name. A build adds files and moves `index.html` into place
 * last: a page that is open goes on with the files it named.
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
/** The template of reports as one file, beside what is served: `reportTemplate` reads it. */
const REPORT = "report.txt";
/**
 * Read by the server of assets. It asks browsers to revalidate what they keep: a longer life would hold for its 404s too,
 * and a file that is gone with one deployment comes back with the one that is rolled back to.
 */
const HEADERS = `/assets/*
  X-Content-Type-Options: nosniff
  Cross-Origin-Resource-Policy: same-origin
`;

/** What a build left: the parts of esbuild's metafile that are read here. */
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

/** The folder of an up-to-date page. An installed package has no sources of it, and comes with it built. */
export async function bundlePage(root: string): Promise<string> {
  const folder = join(root, "dist", "web");
  if (!existsSync(join(root, ENTRY))) return folder;
  const hash = pageHash(root);
  if (readIfThere(join(folder, ".sources")) === hash && existsSync(join(folder, "index.html"))) return folder;
  // Made aside and moved into place: another command may be serving or building the page at this moment.
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

/** What the page is made of, as one number. */
function pageHash(root: string): string {
  const files = globSync(SOURCES, { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
  return hashFiles(createHash("sha256"), root, files);
}

async function build(root: string, draft: string): Promise<void> {
  // Loaded when it is needed: a page that is up to date costs no bundler.
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

/** Files of earlier builds go a day later: nobody has a page open that still names them, and all would be uploaded. */
const DAY_MS = 86_400_000;
function removeOld(assets: string, current: ReadonlySet<string>): void {
  for (const name of readdirSync(assets)) {
    const file = join(assets, name);
    if (!current.has(name) && Date.now() - statSync(file).mtimeMs > DAY_MS) rmSync(file, { force: true });
  }
}

/** The one HTML file: it names the entry, what that imports at once, and the styles. It holds no script of its own. */
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

/** One file: the program and the styles are in it, and its policy lets a browser run that program and fetch nothing. */
function reportOf({
  outputFiles,
}: {
  readonly outputFiles: readonly { readonly path: string; readonly text: string }[];
}) {
  const textOf = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
  // Neither may end the element it stands in.
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

/** The template of a run's report as one file (contract/report-file.ts), of an up-to-date build. */
export async function reportTemplate(root: string): Promise<string> {
  return readFileSync(join(await bundlePage(root), REPORT), "utf8");
}

function fail(message: string): never {
  throw new Error(message);
}
