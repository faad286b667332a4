/**
 * Prints a rollout for a person to read: the messages turn by turn, each tool call next to its result, and how it
 * ended. The texts come from models, tools and datasets, so all of them are made safe for the terminal.
 */

import * as z from "zod";
import {
  type ContentPart,
  commonPrefix,
  Message,
  type Messages,
  type ToolCall,
  textOf,
} from "../../contract/messages.ts";
import type { RolloutView } from "../../contract/run.ts";
import { stopText } from "../../contract/stop-text.ts";
import { continuedBy, historyOf, type StoredPrompt } from "../../contract/trajectory.ts";
import { countText, timeText } from "./format.ts";
import { type Paint, painter, type Style } from "./terminal.ts";
import { cutTo, displayWidth, padTo, preview, safeLine, safeText, wrap } from "./text.ts";

export interface Page {
  /** The total number of columns. */
  readonly width: number;
  readonly paint: Paint;
}

const LABEL_WIDTH = 11;

const NARROWEST_TEXT = 10;

/** The dashes and spaces around a title and its note. */
const NARROWEST_RULE = 7;

export interface Entry {
  readonly label: string;
  readonly style: Style;
  /** Any text: it is made safe here. */
  readonly text: string;
  /** The style of the text; default: none. */
  readonly textStyle?: Style;
}

const STYLES: Readonly<Record<Message["role"], Style>> = {
  system: "magenta",
  user: "blue",
  text: "blue",
  assistant: "green",
  tool: "yellow",
};

export function transcript(
  rollout: RolloutView,
  { width, colour }: { readonly width: number; readonly colour: boolean },
): string {
  const page = { width, paint: painter(colour) };
  const sections = [
    headOf(rollout, page),
    ...conversation(rollout, page),
    ...scoresOf(rollout, page),
    ...judgementsOf(rollout, page),
    ...errorsOf(rollout, page),
    ...failedCallsOf(rollout, page),
    ...stateOf(rollout, page),
  ];
  return sections.map((lines) => lines.join("\n")).join("\n\n");
}

function headOf(rollout: RolloutView, page: Page): string[] {
  const { usage, turns } = rollout;
  const latency = turns.reduce((total, turn) => total + turn.latency_ms, 0);
  const place = `group ${rollout.group}, slot ${rollout.slot}, attempt ${rollout.attempt}`;
  const fields = {
    run: rollout.run_id,
    task: `${rollout.example_id} (${place})`,
    stop: stopText(rollout.stop_condition ?? "–"),
    used: `${turnsText(turns.length)}, ${tokensText(usage)}, ${Math.round(latency)} ms at the model`,
    began: rollout.started_at === null ? "–" : timeText(rollout.started_at),
  };
  return [
    page.paint("bold", `Rollout ${safeLine(rollout.id)}`),
    ...entry(outcomeOf(rollout), page),
    ...Object.entries(fields).flatMap(([label, text]) => {
      return entry({ label, style: "grey", text }, page);
    }),
  ];
}

function outcomeOf(rollout: RolloutView): Entry {
  const { outcome, status, reason, reward } = rollout;
  const words: string[] = [outcome ?? status];
  if (reason !== null) words.push(reason);
  if (reward !== null) words.push(`reward ${numberText(reward)}`);
  if (rollout.is_truncated) words.push("cut off");
  const ended = outcome === "scored" ? "green" : "red";
  return {
    label: "outcome",
    style: "grey",
    text: words.join(" · "),
    textStyle: outcome === null ? "cyan" : ended,
  };
}

/** A section for the prompt and one for each turn, then the environment's last reply. */
function conversation(rollout: RolloutView, page: Page): string[][] {
  const turns = rollout.turns.map((turn) => ({
    ...turn,
    prompt: { ...turn.prompt, append: messagesOf(turn.prompt.append) },
    completion: Message.parse(turn.completion),
  }));
  if (turns.length === 0) {
    const prompt = messagesOf(rollout.prompt).flatMap((message) => messageLines(message, page));
    return prompt.length === 0 ? [] : [prompt];
  }
  const last = finalReply(messagesOf(rollout.prompt), messagesOf(rollout.completion), turns);
  const lengths = turns.map(({ prompt: { keep, append } }) => keep + append.length + 1);
  const next = nextTurns(
    turns.map(({ prompt }) => prompt),
    lengths,
  );
  const sections = turns.map((turn, at) => {
    const base = continuedBy(at, turn.prompt);
    const known = lengths[base] ?? 0;
    const answers = at === turns.length - 1 ? last : (turns[next.get(at) ?? -1]?.prompt.append ?? []);
    const asked = new Set(next.get(base) === at ? turns[base]?.completion.tool_calls?.map(({ id }) => id) : []);
    const others = turn.prompt.append.filter(({ tool_call_id }) => !asked.has(tool_call_id ?? ""));
    return [
      turnRule(turn, page),
      ...continuationNote(turn.prompt, known, page),
      ...others.flatMap((message) => messageLines(message, page)),
      ...messageLines(turn.completion, page, { answers, failed: turn.tool_failed }),
    ];
  });
  const asked = new Set(turns.at(-1)?.completion.tool_calls?.map(({ id }) => id));
  const rest = last.filter(({ tool_call_id }) => !asked.has(tool_call_id ?? ""));
  if (rest.length === 0) return sections;
  return [...sections, [rule("The end", "", page), ...rest.flatMap((it) => messageLines(it, page))]];
}

/** For each turn the one that has the results of its calls: the first that continues all of it, or the turn after it. */
function nextTurns(prompts: readonly StoredPrompt[], lengths: readonly number[]): ReadonlyMap<number, number> {
  const next = new Map<number, number>();
  for (const [at, prompt] of prompts.entries()) {
    const base = continuedBy(at, prompt);
    if (!next.has(base) && prompt.keep === lengths[base]) next.set(base, at);
  }
  for (const [at, { after }] of prompts.entries()) if (after === undefined && !next.has(at - 1)) next.set(at - 1, at);
  return next;
}

function messagesOf(wire: RolloutView["prompt"]): Messages {
  return z.array(Message).parse(wire);
}

/**
 * The messages of the completion after the last turn's answer: the environment's last reply, which the model never
 * read.
 */
function finalReply(prompt: Messages, completion: Messages, turns: Parameters<typeof historyOf>[0]): Messages {
  const history = historyOf(turns);
  const inCompletion = history.length - commonPrefix(history, prompt);
  return completion.slice(inCompletion);
}

function turnRule(turn: Omit<RolloutView["turns"][number], "prompt" | "completion">, page: Page): string {
  const facts = [
    turn.usage === null ? null : tokensText(turn.usage),
    `${Math.round(turn.latency_ms)} ms`,
    turn.calls === 1 ? null : `${turn.calls} calls`,
    turn.finish_reason,
    turn.policy_version === null ? null : `policy ${safeLine(turn.policy_version)}`,
    turn.is_truncated ? "cut off" : null,
    turn.trained === false ? "not trained" : null,
  ];
  const there = facts.filter((fact) => fact !== null);
  return rule(`Turn ${turn.index + 1}`, there.join(" · "), page);
}

/** Which conversation the turn continues, if it is not that of the turn before as a whole. */
function continuationNote({ after, keep }: StoredPrompt, known: number, { paint }: Page): string[] {
  const kept = `${keep} of ${known} messages kept`;
  if (after === undefined) return keep < known ? [paint("yellow", `the history was rewritten: ${kept}`)] : [];
  return [paint("yellow", `continues turn ${after + 1}${keep < known ? `: ${kept}` : ""}`)];
}

interface ToolResults {
  readonly answers: Messages;
  /** For each call of the message, in order: whether it failed; null if that was not recorded. */
  readonly failed?: readonly (boolean | null)[] | undefined;
}

function messageLines(message: Message, page: Page, { answers, failed }: ToolResults = { answers: [] }): string[] {
  const { role, reasoning_content } = message;
  const style = STYLES[role];
  const content = shownContent(message);
  const calls = message.tool_calls ?? [];
  const entries: Entry[] = [];
  if (reasoning_content) entries.push({ label: "reasoning", style: "grey", text: reasoning_content });
  if (content !== "") entries.push({ label: role, style, text: content });
  if (content === "" && calls.length === 0) entries.push({ label: role, style, text: "(nothing)" });
  const results = calls.map((call, at) => {
    const label = content === "" && at === 0 ? role : "";
    const result = answers.find(({ tool_call_id }) => tool_call_id === call.id);
    return callOf(label, call, { result, failed: failed?.[at] === true }, page);
  });
  return [...entries.map((each) => entry(each, page)), ...results].flat();
}

/** The text, with a line for each part that is not text. */
function shownContent({ content }: Message): string {
  if (content === null || typeof content === "string") return content ?? "";
  return content.map(partText).join("\n");
}

function partText(part: ContentPart): string {
  if (part.type === "text") return textOf({ content: [part] });
  const image = part.type === "image_url" ? JSON.stringify(part) : "";
  const url = /"url":"(https?:[^"]*)"/.exec(image)?.[1];
  return url === undefined ? `[${part.type}]` : `[${part.type} ${url}]`;
}

/** The call and its result next to each other if they fit on a line, else one below the other. */
function callOf(
  label: string,
  call: ToolCall,
  { result, failed }: { readonly result: Message | undefined; readonly failed: boolean },
  page: Page,
): string[] {
  const style = failed ? "red" : "green";
  const asked = safeLine(`${call.function.name}(${call.function.arguments})`);
  if (result === undefined) {
    return entry({ label, style, text: `${asked} → (no result)` }, page);
  }
  const answer = `${failed ? "failed: " : ""}${shownContent(result)}`;
  const beside = `${asked} → ${safeText(answer)}`;
  if (!beside.includes("\n") && displayWidth(beside) <= textWidth(page)) {
    return entry({ label, style, text: beside }, page);
  }
  return [
    ...entry({ label, style, text: asked }, page),
    ...entry({ label: "  → tool", style: failed ? "red" : STYLES.tool, text: answer || "(nothing)" }, page),
  ];
}

function scoresOf({ scores, scoring_errors }: RolloutView, page: Page): string[][] {
  if (scores.length + scoring_errors.length === 0) return [];
  const width = Math.max(0, ...scores.map(({ name }) => displayWidth(safeLine(name))));
  const lines = scores.map(({ name, score, weight }) => {
    const value = score === null ? "–" : numberText(score);
    const part = weight === 0 ? "metric" : `× ${weight}`;
    return `${padTo(safeLine(name), width)}  ${value.padStart(8)}  ${page.paint("grey", part)}`;
  });
  const errors = scoring_errors.flatMap(({ function: name, error }) => {
    return entry({ label: name, style: "red", text: error, textStyle: "red" }, page);
  });
  return [[rule("Scores", "", page), ...lines, ...errors]];
}

function judgementsOf({ judgements }: RolloutView, page: Page): string[][] {
  if (judgements.length === 0) return [];
  const lines = judgements.flatMap(({ judge, model, verdict, reason, error, reply }) => {
    const said =
      verdict === null ? "no verdict" : typeof verdict === "object" ? JSON.stringify(verdict) : String(verdict);
    return [
      ...entry({ label: judge, style: "cyan", text: `${said}, by ${model}` }, page),
      ...(reason === null ? [] : entry({ label: "reason", style: "grey", text: reason }, page)),
      ...(error === null ? [] : entry({ label: "error", style: "red", text: error, textStyle: "red" }, page)),
      ...(reply === undefined ? [] : entry({ label: "reply", style: "grey", text: reply }, page)),
    ];
  });
  return [[rule("Judges", "", page), ...lines]];
}

/** The calls that were retried, one per line. The last failed call of a failed rollout is among its errors. */
function failedCallsOf({ failed_calls }: RolloutView, page: Page): string[][] {
  if (failed_calls.length === 0) return [];
  const lines = failed_calls.flatMap(({ turn, call, error, message }) => {
    const text = `call ${call}: ${error}: ${message}`;
    return entry({ label: `turn ${turn + 1}`, style: "grey", text }, page);
  });
  return [[rule("Failed calls", "", page), ...lines]];
}

function errorsOf({ error, cleanup_errors }: RolloutView, page: Page): string[][] {
  const all = [...(error === null ? [] : [error]), ...cleanup_errors];
  if (all.length === 0) return [];
  const lines = all.flatMap(({ error: name, message, error_chain_str }) => [
    ...entry({ label: "error", style: "red", text: `${name}: ${message}`, textStyle: "red" }, page),
    ...entry({ label: "chain", style: "grey", text: error_chain_str }, page),
  ]);
  return [[rule("Errors", "", page), ...lines]];
}

function stateOf({ state }: RolloutView, page: Page): string[][] {
  const fields = Object.entries(state);
  if (fields.length === 0) return [];
  const lines = fields.flatMap(([name, value]) => {
    return entry({ label: "", style: "grey", text: `${name}: ${JSON.stringify(value)}` }, page);
  });
  return [[rule("State", "", page), ...lines]];
}

function tokensText({ prompt_tokens, completion_tokens }: RolloutView["usage"]): string {
  return `${countText(prompt_tokens)} + ${countText(completion_tokens)} tokens`;
}

function turnsText(turns: number): string {
  return turns === 1 ? "1 turn" : `${countText(turns)} turns`;
}

function numberText(value: number): string {
  return value.toFixed(3);
}

/** The layout of a transcript: a narrow column of names and a wide one of text. */
export function textWidth({ width }: Page): number {
  return Math.max(NARROWEST_TEXT, width - LABEL_WIDTH);
}

/** A name in the left column, the text wrapped to its right. */
export function entry({ label, style, text, textStyle }: Entry, page: Page): string[] {
  const { shown, missing } = preview(safeText(text));
  const lines = wrap(shown, textWidth(page)).map((line) => {
    return textStyle === undefined ? line : page.paint(textStyle, line);
  });
  if (missing !== null) lines.push(page.paint("grey", missing));
  return lines.map((line, at) => {
    const name = padTo(at === 0 ? label : "", LABEL_WIDTH);
    // Spaces are not painted, because painted spaces would not be trimmed.
    return ((name.trim() === "" ? name : page.paint(style, name)) + line).trimEnd();
  });
}

export function rule(title: string, facts: string, { paint, width }: Page): string {
  const room = width - displayWidth(title) - NARROWEST_RULE;
  const said = facts === "" ? "" : ` ${cutTo(facts, room)}`;
  const dashes = "─".repeat(Math.max(2, width - displayWidth(title) - displayWidth(said) - 4));
  return `${paint("grey", "──")} ${paint("bold", title)} ${paint("grey", dashes + said)}`;
}
