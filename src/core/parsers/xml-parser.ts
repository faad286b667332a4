/**
 * Parses replies of tagged fields: `<reasoning>…</reasoning><answer>…</answer>`.
 *
 * Invariants. A field is one tag, or several alternatives, of which the first is its canonical name. Tags are literal
 * text: `<a >` is not a tag, `a.b` is not a pattern, and tags do not nest. A match goes from an opening tag to the
 * first closing tag after it and is trimmed. The scan only goes forward, so time is linear in the text.
 */
import type { Messages } from "../../contract/messages.ts";
import { assistantTexts, meanOverReplies, Parser } from "./parser.ts";
import { isThoughtTag, withoutThoughts } from "./thoughts.ts";

export type XMLField = string | readonly string[];
/** Each tag's content: null if absent, "" if empty. */
export type XMLFields = Readonly<Record<string, string | null>>;

export class XMLParser extends Parser {
  readonly #fields: readonly (readonly [string, ...string[]])[];
  readonly #answerField: string;

  /** Throws if there is no field, a field is empty or not a text, or two fields share a canonical name. */
  constructor(fields: readonly XMLField[], answerField = "answer") {
    super();
    this.#fields = checkFields(fields);
    this.#answerField = answerField;
  }

  /** Canonical names, in order. */
  get fields(): string[] {
    return this.#fields.map(([canonical]) => canonical);
  }

  /** The first match of every tag, or the last with `last`. */
  override parse(text: string, options: { readonly last?: boolean } = {}): XMLFields {
    const find = options.last === true ? lastMatch : firstMatch;
    return Object.fromEntries(this.#fields.flat().map((tag) => [tag, find(text, tag)]));
  }

  /**
   * Of a string the last match; of messages the first match of the newest reply that has one. A draft in the thoughts
   * is not an answer, unless the field itself is the thoughts.
   */
  override parseAnswer(completion: Messages | string): string | null {
    const tag = this.#answerField;
    if (!this.#fields.flat().includes(tag)) return null;
    const said = isThoughtTag(tag) ? (text: string) => text : withoutThoughts;
    if (typeof completion === "string") return lastMatch(said(completion), tag);
    for (const text of assistantTexts(completion).reverse()) {
      const answer = firstMatch(said(text), tag);
      if (answer !== null) return answer;
    }
    return null;
  }

  /** Writes values under their canonical tags. A field's canonical key has precedence over its alternatives. */
  format(values: Readonly<Record<string, string | number | boolean | null>>): string {
    return this.#fields
      .map((names) => {
        const given = names.find((name) => Object.hasOwn(values, name));
        const value = given === undefined ? null : (values[given] ?? null);
        if (value === null) {
          throw new Error(`no value for the field ${names[0]}; set one of: ${names.join(", ")}`);
        }
        return element(names[0], String(value));
      })
      .join("\n");
  }

  /** The expected format for a prompt: `...` for each value, alternatives as `[ a | b ]`. */
  formatDescription(): string {
    return this.#fields
      .map((names) => element(names.length === 1 ? names[0] : `[ ${names.join(" | ")} ]`, "..."))
      .join("\n");
  }

  /**
   * The mean over replies of: 0.4 × fraction of fields present (if any field parses) + 0.2 for starting with the first
   * field + 0.2 for ending with the last + 0.2 always. The constant is verifiers': its spacing check cannot fail.
   */
  override formatReward(completion: Messages | string): number {
    return meanOverReplies(completion, (text) => this.#formOf(text.trim()));
  }

  #formOf(text: string): number {
    const parsed = this.#fields.some((names) => names.some((tag) => firstMatch(text, tag) !== null));
    const present = this.#fields.filter((names) =>
      names.some((tag) => text.includes(open(tag)) || text.includes(close(tag))),
    );
    const starts = this.#fields[0]?.some((tag) => text.startsWith(open(tag)));
    const ends = this.#fields.at(-1)?.some((tag) => text.endsWith(close(tag)));
    const share = parsed ? (0.4 * present.length) / this.#fields.length : 0;
    return share + 0.2 + (starts ? 0.2 : 0) + (ends ? 0.2 : 0);
  }
}

function checkFields(fields: readonly XMLField[]): (readonly [string, ...string[]])[] {
  if (fields.length === 0) throw new Error("an XML parser needs at least one field");
  const seen = new Set<string>();
  return fields.map((field) => {
    const names: readonly unknown[] = Array.isArray(field) ? field : [field];
    if (!names.every((name) => typeof name === "string" && name !== "")) {
      throw new TypeError(`a field is a tag or a list of tags, not ${JSON.stringify(field)}`);
    }
    const [canonical, ...others] = names.map(String);
    if (canonical === undefined) throw new Error("a field needs at least one tag");
    if (seen.has(canonical)) throw new Error(`two fields are named ${canonical}`);
    seen.add(canonical);
    return [canonical, ...others] as const;
  });
}

function firstMatch(text: string, tag: string): string | null {
  return matchFrom(text, tag, 0)?.content ?? null;
}

function lastMatch(text: string, tag: string): string | null {
  let last: string | null = null;
  let match = matchFrom(text, tag, 0);
  while (match !== null) {
    last = match.content;
    match = matchFrom(text, tag, match.end);
  }
  return last;
}

function matchFrom(text: string, tag: string, from: number): { content: string; end: number } | null {
  const opened = text.indexOf(open(tag), from);
  if (opened === -1) return null;
  const start = opened + open(tag).length;
  const closed = text.indexOf(close(tag), start);
  if (closed === -1) return null;
  return { content: text.slice(start, closed).trim(), end: closed + close(tag).length };
}

function element(tag: string, content: string): string {
  return `${open(tag)}\n${content}\n${close(tag)}`;
}

function open(tag: string): string {
  return `<${tag}>`;
}

function close(tag: string): string {
  return `</${tag}>`;
}
