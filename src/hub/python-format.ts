/** What Python's package managers read: PEP 503, 592, 658, 691 and 700. */
import * as z from "zod";
import { nameKeyOf } from "../contract/published-environment.ts";
import { parseWheelName } from "./python-names.ts";
import type { ListedVersion } from "./queries.ts";

export const JSON_TYPE = "application/vnd.pypi.simple.v1+json";
const META = { "api-version": "1.1" };

const Meta = z.object({ "api-version": z.string() });

export const PythonProjects = z.object({
  meta: Meta,
  projects: z.array(z.object({ name: z.string() })),
});
export type PythonProjects = z.output<typeof PythonProjects>;

const File = z.object({
  filename: z.string(),
  url: z.string().describe("relative to the address of the list"),
  hashes: z.object({ sha256: z.string() }),
  "requires-python": z.string().optional(),
  size: z.int(),
  "upload-time": z.string(),
  yanked: z.union([z.boolean(), z.string()]).describe("false, or the reason"),
  "core-metadata": z.object({ sha256: z.string() }),
});

export const PythonProject = z.object({
  meta: Meta,
  name: z.string(),
  versions: z.array(z.string()),
  files: z.array(File),
});
export type PythonProject = z.output<typeof PythonProject>;

const HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
export const PROJECTS_EXAMPLE: PythonProjects = { meta: META, projects: [{ name: "guess-word" }] };
export const PROJECT_EXAMPLE: PythonProject = {
  ...{ meta: META, name: "guess-word", versions: ["1.0.1"] },
  files: [
    {
      ...{ filename: "guess_word-1.0.1-py3-none-any.whl", url: "../../files/guess_word-1.0.1-py3-none-any.whl" },
      ...{ hashes: { sha256: HASH }, size: 4096, "upload-time": "2026-11-28T00:00:00.000Z", yanked: false },
      "core-metadata": { sha256: HASH },
    },
  ],
};

export function projectsOf(names: readonly string[]): PythonProjects {
  return { meta: META, projects: names.map((name) => ({ name: nameKeyOf(name) })) };
}

export function projectOf(name: string, versions: readonly ListedVersion[]): PythonProject {
  const files = versions.flatMap(fileOf);
  return {
    ...{ meta: META, name: nameKeyOf(name), files },
    versions: files.flatMap(({ filename }) => parseWheelName(filename)?.version ?? []),
  };
}

function fileOf({ wheel, digest, created_at, yanked_at, yank_reason }: ListedVersion): PythonProject["files"] {
  if (wheel === null) return [];
  const { file, bytes, metadata, requires_python: requires } = wheel;
  return [
    {
      ...{ filename: file, url: `../../files/${file}`, hashes: { sha256: digest.replace("sha256:", "") } },
      ...(requires !== null && { "requires-python": requires }),
      ...{ size: bytes, "upload-time": new Date(created_at).toISOString() },
      ...{ yanked: yanked_at === null ? false : (yank_reason ?? true), "core-metadata": { sha256: metadata } },
    },
  ];
}

export function projectsPage({ projects }: PythonProjects): string {
  return page(
    "Projects",
    projects.map(({ name }) => link(`${name}/`, {}, name)),
  );
}

export function projectPage({ name, files }: PythonProject): string {
  const links = files.map((file) => {
    const { yanked, "requires-python": requires, "core-metadata": metadata } = file;
    const attributes = {
      ...(requires !== undefined && { "data-requires-python": requires }),
      ...(yanked !== false && { "data-yanked": String(yanked) }),
      "data-core-metadata": `sha256=${metadata.sha256}`,
    };
    return link(`${file.url}#sha256=${file.hashes.sha256}`, attributes, file.filename);
  });
  return page(`Files of ${name}`, links);
}

function page(title: string, links: readonly string[]): string {
  const meta = `<meta name="pypi:repository-version" content="${META["api-version"]}">`;
  const head = `<head><meta charset="utf-8">${meta}<title>${escaped(title)}</title></head>`;
  return `<!DOCTYPE html>\n<html>${head}\n<body>\n${links.map((one) => `${one}<br>\n`).join("")}</body></html>\n`;
}

function link(href: string, attributes: Readonly<Record<string, string>>, text: string): string {
  const all = Object.entries({ href, ...attributes }).map(([name, value]) => ` ${name}="${escaped(value)}"`);
  return `<a${all.join("")}>${escaped(text)}</a>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** Whether a client prefers JSON to HTML. Without a preference it gets HTML, which all clients read. */
export function prefersJson(accept: string): boolean {
  const best = { json: 0, html: 0 };
  for (const one of accept.split(",")) {
    const [, type = "", , quality = "1"] = /^\s*([^;\s]+)\s*(;.*?q=([\d.]+))?/i.exec(one) ?? [];
    const form = /^application\/(?:vnd\.pypi\.simple\.(?:v1|latest)\+)?json$/i.test(type) ? "json" : "html";
    if (form === "json" || /html$|^\*\/\*$/i.test(type)) best[form] = Math.max(best[form], Number(quality) || 0);
  }
  return best.json > 0 && best.json >= best.html;
}
