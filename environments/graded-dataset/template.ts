/**
 * `{{ item.question }}`: OpenAI's templates, which name members of the row (`item`) and of the model's reply
 * (`sample`).
 *
 * Invariants. Filled in one pass: braces in inserted values are not slots. A text is inserted as it is, any other value
 * as its JSON, and a missing one as nothing. A name that can never exist is refused when the template is parsed. A slot
 * may name megabytes and a template may have thousands of slots, so the size is counted while it is filled.
 * Source: https://developers.openai.com/api/docs/guides/graders (templating).
 */
import { EnvError, type Json } from "rollcall";
import * as z from "zod";

/** The values that templates may name. */
export interface Names {
  readonly item: Json;
  readonly sample?: Sample;
  /** Counts work, if it is counted: throws beyond a budget. */
  readonly spend?: (steps: number) => void;
}

/** The model's reply, with OpenAI's names of its parts. */
export interface Sample {
  readonly [part: string]: Json;
  readonly output_text: string;
  /** The text parsed as JSON; null if it is not JSON. */
  readonly output_json: Json;
  /** The tool calls, as chat completions list them. */
  readonly output_tools: Json;
  readonly choices: Json;
}

const SAMPLE_PARTS = ["output_text", "output_json", "output_tools", "choices"];
const SLOT = /\{\{([^{}]*)\}\}/g;
/** A slot without an end. */
const UNCLOSED = /\{\{\s*(?:item|sample)\b/;
const PATH = /^(item|sample)((?:\.[\w$-]+|\[\d+\])*)$/;
const STEP = /\.([\w$-]+)|\[(\d+)\]/g;

/** Characters of a slot per step: about 12 ns to write one as JSON. */
const CHARACTERS = 4;

/** Maximal length of one filled template, or of all messages of one prompt together. */
export const MOST_CHARACTERS = 4 * 1024 * 1024;

export type Path = readonly string[];

/** A text with slots that may name both. */
export const Template = templateOf(["item", "sample"]);
/** A text with slots for a prompt: there is no reply yet. */
export const ItemTemplate = templateOf(["item"]);

function templateOf(roots: readonly string[]) {
  return z.string().check((context) => {
    const refuse = (message: string) => context.issues.push({ code: "custom", input: context.value, message });
    if (UNCLOSED.test(context.value.replace(SLOT, ""))) refuse("{{ without its }}");
    for (const [, inside = ""] of context.value.matchAll(SLOT)) {
      const wrong = refusalOf(inside, roots);
      if (wrong !== null) refuse(wrong);
    }
  });
}

function refusalOf(inside: string, roots: readonly string[]): string | null {
  const path = pathOf(inside);
  const name = inside.trim();
  if (path === null) return `{{${name}}}: a slot holds a path like item.answer`;
  const [root = "", part] = path;
  if (!roots.includes(root)) return `{{${name}}}: only ${roots.join(" and ")} can be named here`;
  if (root === "item" || (part !== undefined && SAMPLE_PARTS.includes(part))) return null;
  return `{{${name}}}: of a sample there are ${SAMPLE_PARTS.join(", ")}`;
}

/** The members of a path, its root first; null if the text is not a path. */
export function pathOf(inside: string): Path | null {
  const [, root, steps] = PATH.exec(inside.trim()) ?? [];
  if (root === undefined || steps === undefined) return null;
  return [root, ...[...steps.matchAll(STEP)].map(([, name, index]) => name ?? index ?? "")];
}

/** The paths in a template. */
export function pathsIn(template: string): Path[] {
  const slots = [...template.matchAll(SLOT)].map(([, inside = ""]) => pathOf(inside));
  return slots.filter((path) => path !== null);
}

/** Throws `EnvError` if the result has more than `most` characters. */
export function render(template: string, names: Names, most: number = MOST_CHARACTERS): string {
  let length = template.length;
  return template.replace(SLOT, (_slot, inside: string) => {
    const text = textOf(valueAt(names, inside));
    names.spend?.(text.length / CHARACTERS);
    length += text.length;
    if (length > most) {
      const limit = MOST_CHARACTERS.toLocaleString("en-US");
      throw new EnvError(`a template comes to more than ${limit} characters: name less in it`);
    }
    return text;
  });
}

/** Undefined if there is no such member. */
export function memberAt(root: Json | undefined, path: Path): Json | undefined {
  let at = root;
  for (const step of path) {
    if (at === null || typeof at !== "object" || !Object.hasOwn(at, step)) return undefined;
    at = Reflect.get(at, step) as Json;
  }
  return at;
}

function valueAt(names: Names, inside: string): Json | undefined {
  const [root, ...path] = pathOf(inside) ?? [];
  return memberAt(root === "item" ? names.item : names.sample, path);
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
