/** The code blocks of docs/training.md, and a comparison of replies with what the page shows. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const PAGE = readFileSync(join(import.meta.dirname, "../../../docs/training.md"), "utf8");

interface Fence {
  /** The language, and the rest of the line. */
  readonly kind: string;
  readonly text: string;
}

const FENCES: readonly Fence[] = Array.from(
  PAGE.matchAll(/```([^\n]*)\n([\s\S]*?)```/g),
  ([, kind = "", text = ""]) => ({ kind, text }),
);

/** Shell blocks in the order of the page, each with the reply that follows it. */
export const STEPS: readonly { readonly command: string; readonly shown: Fence | null }[] = FENCES.flatMap(
  ({ kind, text }, index) => {
    const next = FENCES[index + 1];
    const shown = next?.kind === "json" || next?.kind === "http" ? next : null;
    return kind === "sh" ? [{ command: text.trimEnd(), shown }] : [];
  },
);

/** The only block of that kind. */
export function block(kind: string): string {
  const [only, ...more] = FENCES.filter((fence) => fence.kind === kind);
  if (only === undefined || more.length > 0) throw new Error(`not one block of ${kind}`);
  return only.text;
}

/** Numbers that are the same in every run; of other numbers only the type is compared. */
const COUNTED = ["epoch", "next_step", "published", "attempt", "step", "generation", "version"];

/**
 * The differences of a reply from the shown one: other members, other types, other texts. A shown text with "…" matches
 * any text, and a shown member named "…" matches any further members. Of a list, the first element is compared.
 */
export function differences(shown: unknown, got: unknown, path = "reply"): string[] {
  if (Array.isArray(shown)) {
    if (!Array.isArray(got)) return [`${path} is no list`];
    return shown.length === 0 ? [] : differences(shown[0], got[0], `${path}[0]`);
  }
  if (isRecord(shown)) {
    return isRecord(got) ? membersApart(shown, got, path) : [`${path} is no object`];
  }
  return alike(shown, got, path) ? [] : [`${path} is ${JSON.stringify(got)}, shown as ${shown}`];
}

function alike(shown: unknown, got: unknown, path: string): boolean {
  if (typeof shown === "number" && !COUNTED.includes(path.split(".").at(-1) ?? "")) {
    return typeof got === "number";
  }
  if (typeof shown === "string" && shown.includes("…")) return typeof got === "string";
  return shown === got;
}

function membersApart(shown: Record<string, unknown>, got: Record<string, unknown>, path: string): string[] {
  const { "…": more, ...named } = shown;
  const unsaid = more === undefined ? Object.keys(got).filter((name) => !(name in named)) : [];
  return [
    ...unsaid.map((name) => `${path}.${name} is not shown`),
    ...Object.entries(named).flatMap(([name, value]) => {
      return differences(value, got[name], `${path}.${name}`);
    }),
  ];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Lines of a reply's head that must be present, ignoring the case of header names. */
export function headDifferences(shown: string, got: string): string[] {
  const came = new Set(got.split(/\r?\n/).map(lowerName));
  return shown
    .trimEnd()
    .split("\n")
    .filter((line) => !came.has(lowerName(line)));
}

function lowerName(line: string): string {
  return line.trim().replace(/^[\w-]+:/, (name) => name.toLowerCase());
}
