/** Completions for a filter while it is typed. Pure: takes the text and the caret, returns pieces of text. */

import { MARKS } from "../../contract/agreement.ts";
import { CANCEL_REASONS, FAILURE_CLASSES, UNSCORED_CAUSES } from "../../contract/errors.ts";
import {
  FLAG_FIELDS,
  LISTED_STATUSES,
  NUMBER_FIELDS,
  printFilter,
  printName,
  REVIEW_FIELDS,
  WORD_FIELDS,
  type WordField,
} from "../../contract/filter.ts";
import { OUTCOMES } from "../../contract/run.ts";

export interface Suggestion {
  /** Replaces the piece under the caret. */
  readonly text: string;
  readonly description: string;
  /** True if the term is then complete, and the next one may follow. */
  readonly whole: boolean;
}

export interface Suggestions {
  /** The piece of the text that a suggestion replaces. */
  readonly from: number;
  readonly to: number;
  readonly options: readonly Suggestion[];
}

/** Names that only this run has, such as its scores. */
export interface KnownWords {
  readonly metrics: readonly string[];
  readonly stops?: readonly string[] | undefined;
  readonly members?: readonly string[] | undefined;
}

const MOST = 12;

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  reward: "a number",
  turns: "answered turns",
  calls: "calls of the model",
  tokens: "in and out",
  duration: "as 2s, 500ms, 5m",
  group: "number of the group",
  slot: "place in its group",
  attempt: "0 is the first",
  example: "number of the task",
  step: "training step that shipped it",
  outcome: "how it ended",
  status: "running, scoring, done",
  error: "error class, cause or reason",
  stop: "why it stopped",
  task: "begins with",
  member: "environment of a group",
  id: "begins with",
  truncated: "cut off by a limit",
  judged: "it has judgements",
  superseded: "replaced by a later attempt",
  cancelling: "cancellation requested",
  reviewed: "it has reviews",
  mark: "good, bad or unsure, by a reviewer",
  reviewer: "id of a key or person",
};

export function suggestionsAt(text: string, caret: number, known: KnownWords): Suggestions {
  const from = pieceStart(text, caret);
  const piece = text.slice(from, caret);
  const sign = /^(-|not\s+)/.exec(piece)?.[0] ?? "";
  const word = piece.slice(sign.length);
  const asked = /^([a-z_]+)(:|=|!=)((?:[^|]*\|)*)([^|]*)$/.exec(word);
  const options =
    asked === null
      ? fieldsFor(word, known).map((option) => ({ ...option, text: sign + option.text }))
      : valuesFor(asked, known).map((option) => ({ ...option, text: sign + option.text }));
  return { from, to: caret, options: options.slice(0, MOST) };
}

/** After the last space that is not in quotes. */
function pieceStart(text: string, caret: number): number {
  let start = 0;
  let quoted = false;
  for (let at = 0; at < caret; at += 1) {
    if (text[at] === '"' && text[at - 1] !== "\\") quoted = !quoted;
    else if (!quoted && /\s/.test(text[at] ?? "")) start = at + 1;
  }
  return start;
}

function fieldsFor(word: string, { metrics }: KnownWords): Suggestion[] {
  const fields = [
    ...NUMBER_FIELDS.map((field) => ({ text: `${field}<`, name: field })),
    ...[...WORD_FIELDS, ...FLAG_FIELDS, ...REVIEW_FIELDS].map((field) => ({ text: `${field}:`, name: field })),
  ].map(({ text, name }) => ({ text, name, description: DESCRIPTIONS[name] ?? "" }));
  const scores = metrics.map((name) => ({ text: `${printName(name)}<`, name, description: "a score" }));
  const wanted = word.replace(/^"/, "").toLowerCase();
  return [...fields, ...scores]
    .filter(({ name }) => name.toLowerCase().startsWith(wanted) && name !== word)
    .map(({ text, description }) => ({ text, description, whole: false }));
}

function valuesFor(
  [, field = "", op = ":", before = "", begun = ""]: RegExpExecArray,
  known: KnownWords,
): Suggestion[] {
  if (field === "reviewed" || FLAG_FIELDS.some((one) => one === field)) {
    return ["true", "false"]
      .filter((value) => value.startsWith(begun))
      .map((value) => ({ text: `${field}${op}${value}`, description: "", whole: true }));
  }
  if (field === "mark") {
    return MARKS.filter((value) => value.startsWith(begun)).map((value) => {
      return { text: `${field}${op}${before}${value}`, description: "", whole: true };
    });
  }
  const word = WORD_FIELDS.find((one) => one === field);
  if (word === undefined) return [];
  const wanted = begun.replace(/^"/, "").toLowerCase();
  return wordsOf(word, known)
    .filter((value) => value.toLowerCase().startsWith(wanted))
    .map((value) => ({ text: `${field}${op}${before}${written(word, value)}`, description: "", whole: true }));
}

function written(field: WordField, value: string): string {
  return printFilter([{ kind: "word", field, values: [value], negated: false }]).slice(field.length + 1);
}

function wordsOf(field: WordField, { stops = [], members = [] }: KnownWords): readonly string[] {
  if (field === "outcome") return OUTCOMES;
  if (field === "status") return LISTED_STATUSES;
  if (field === "error") return [...FAILURE_CLASSES, ...UNSCORED_CAUSES, ...CANCEL_REASONS];
  if (field === "stop") return stops;
  return field === "member" ? members : [];
}
