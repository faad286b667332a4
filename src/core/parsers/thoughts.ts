/**
 * Removes a model's thoughts (its reasoning) from a text, so that a score reads only the answer: the `content` of a
 * server that separates the reasoning itself.
 *
 * Invariants. A thought goes from its opening mark to its closing one; marks of different spellings close each other,
 * and they nest. A closing mark without an opening one ends a thought that the chat template began, so all text before
 * it is thought. There is no answer after a thought that never ends. A mark that is only mentioned is ignored
 * (mentions.ts). A text without marks is returned unchanged; otherwise white space at the ends is removed. Time is
 * linear in the text. Sources: the reasoning parsers of vLLM and SGLang, the chat formats of llama.cpp, OpenAI's
 * harmony format.
 */
import { Mentions, type Span } from "./mentions.ts";

/** The answer in a text; "" if there are only thoughts. */
export function withoutThoughts(text: string): string {
  const answer = outsideMarks(finalMessages(afterAnnounced(text)));
  return answer === text ? text : answer.trim();
}

/** Whether a tag of this name contains thoughts. */
export function isThoughtTag(name: string): boolean {
  return THOUGHT_TAG.test(name);
}

interface Mark extends Span {
  readonly kind: "open" | "close" | "frame";
}

const TAG =
  "(?:(?:antml:|seed:|longcat_)?(?:think|thinking|thoughts?|reason|reasoning)(?::opensource)?|antthinking" +
  "|scratch_?pad|inner_(?:monologue|thoughts)|chain_of_thought)";
const THOUGHT_TAG = new RegExp(`^${TAG}$`, "i");
const ATTRIBUTES = '(?:\\s{1,3}[\\w:-]{1,30}="[^"<>]{0,100}"){0,3}\\s{0,3}';
const OPEN = [
  `<(?:${TAG}${ATTRIBUTES}|\\|think(?:ing)?\\|)>`,
  "\\[THINK\\]",
  "◁think▷",
  "<\\|START_THINKING\\|>",
  "<\\|begin_of_thought\\|>",
  "<\\|inner_prefix\\|>",
  "<\\|channel>",
  "<unused94>",
];
const CLOSE = [
  `<(?:/${TAG}\\s{0,3}|\\|/think(?:ing)?\\|)>`,
  "\\[/THINK\\]",
  "◁/think▷",
  "<\\|END_THINKING\\|>",
  "<\\|end_of_thought\\|>",
  "<\\|inner_suffix\\|>",
  "<channel\\|>",
  "<unused95>",
];
/** Marks that contain no thought and do not belong to an answer. */
const FRAME = [`<${TAG}\\s{0,3}/>`, "<\\|(?:START|END)_RESPONSE\\|>", "<\\|(?:begin|end)_of_solution\\|>", "<turn\\|>"];
const MARK = new RegExp(`(${OPEN.join("|")})|(${CLOSE.join("|")})|(?:${FRAME.join("|")})`, "gi");

function outsideMarks(text: string): string {
  const found = Array.from(text.matchAll(MARK), ({ 0: { length }, 1: open, 2: close, index }): Mark => {
    const kind = open !== undefined ? "open" : close !== undefined ? "close" : "frame";
    return { start: index, end: index + length, kind };
  });
  if (found.length === 0) return text;
  return textOutside(text, thoughtsBetween(text, marksMeant(text, found)));
}

function marksMeant(text: string, found: readonly Mark[]): Mark[] {
  const mentions = new Mentions(text);
  const marks: Mark[] = [];
  let depth = 0;
  for (const mark of found) {
    // A thought may leave its code block open: for its closing mark, only a quoted mark is a mention.
    const ends = mark.kind === "close" && depth > 0;
    if (mentions.isQuoted(mark) || (!ends && mentions.isCode(mark, mark.kind === "close"))) continue;
    marks.push(mark);
    if (mark.kind === "open") depth += 1;
    if (ends) depth -= 1;
  }
  const open = new Set(neverClosed(marks));
  return marks.flatMap((mark, at): Mark[] => {
    if (!open.has(at)) return [mark];
    const next = marks[at + 1];
    const doubled = next?.kind === "open" && isBlank(text, mark.end, next.start);
    if (doubled) return [{ ...mark, kind: "frame" }];
    return mentions.isWord(mark) ? [] : [mark];
  });
}

/** Indices in the list of the opening marks without a closing one. */
function neverClosed(marks: readonly Mark[]): number[] {
  const open: number[] = [];
  for (const [at, { kind }] of marks.entries()) {
    if (kind === "open") open.push(at);
    if (kind === "close") open.pop();
  }
  return open;
}

/** In order, none inside another. */
function thoughtsBetween(text: string, marks: readonly Mark[]): Span[] {
  const said = endOfSpeech(text, marks);
  const open: Mark[] = [];
  let spans: Span[] = [];
  for (const mark of marks) {
    const [outer] = open;
    if (mark.kind === "open") open.push(mark);
    else if (outer === undefined) {
      spans = mark.kind === "close" ? endBegun(spans, mark, mark.end > said) : append(spans, mark);
    } else if (mark.kind === "close") {
      open.pop();
      if (open.length === 0) spans.push({ start: outer.start, end: mark.end });
    }
  }
  return [...spans, ...thoughtsLeft(text, marks, open[0])];
}

/** All text before the mark was thought. But if thoughts have ended and no words follow, only the mark is removed. */
function endBegun(spans: Span[], mark: Span, isLast: boolean): Span[] {
  return isLast && spans.length > 0 ? append(spans, mark) : [{ start: 0, end: mark.end }];
}

function append(spans: Span[], span: Span): Span[] {
  spans.push(span);
  return spans;
}

/** The thought from an opening mark without a closing one. */
function thoughtsLeft(text: string, marks: readonly Mark[], open: Mark | undefined): Span[] {
  if (open === undefined) return [];
  const closed = marks.findLast(({ kind }) => kind === "close");
  if (closed === undefined || closed.start < open.start) return [{ start: open.start, end: text.length }];
  // There is one opening mark too many: the last closing mark ended this thought. A mark opened after it never closes.
  const again = marks.find(({ kind, start }) => kind === "open" && start > closed.start);
  const left = again === undefined ? [] : [{ start: again.start, end: text.length }];
  return [{ start: open.start, end: closed.end }, ...left];
}

/** The end of the last words that no closing mark follows; only marks and white space come after it. */
function endOfSpeech(text: string, marks: readonly Mark[]): number {
  let end = text.length;
  for (const mark of marks.toReversed()) {
    if (mark.kind === "open" || !isBlank(text, mark.end, end)) return end;
    end = mark.start;
  }
  return end;
}

function textOutside(text: string, spans: readonly Span[]): string {
  const kept: string[] = [];
  let from = 0;
  for (const { start, end } of [...spans, { start: text.length, end: text.length }]) {
    const piece = text.slice(from, start);
    // Words on both sides of a thought must not become one word.
    const joins = kept.length > 0 && /\S$/.test(kept.at(-1) ?? "") && /^\S/.test(piece);
    if (piece !== "") kept.push(joins ? `\n${piece}` : piece);
    from = end;
  }
  return kept.join("");
}

function isBlank(text: string, start: number, end: number): boolean {
  return text.slice(start, end).trim() === "";
}

/** Signs of harmony (gpt-oss), and of Solar Open, whose `begin`, `think` and `content` mean the same. */
const SIGN = /<\|(start|begin|channel|think|message|content|end|return|call)\|>/gi;

const HEADS = ["start", "begin", "channel"];
const HOLDS = ["message", "content"];
const ENDS = ["end", "return", "call"];

type Channel = "final" | "other" | "none";

interface Sign extends Span {
  readonly name: string;
}

/**
 * The content of the messages in the channel `final`; without any, the text outside of channels. A text without
 * messages only loses the signs at its end.
 */
function finalMessages(text: string): string {
  const signs = signsIn(text);
  const [first] = signs;
  if (first === undefined) return text;
  const begins = HEADS.includes(first.name) && isBlank(text, 0, first.start);
  if (!begins && !signs.some(({ name }) => HOLDS.includes(name))) return textOutside(text, signsAtEnd(text, signs));
  const channel = HOLDS.includes(first.name) ? channelIn(text.slice(0, first.start)) : "none";
  const { final, none } = textByChannel(text, signs, channel);
  return (final.length > 0 ? final : none).join("\n");
}

function textByChannel(
  text: string,
  signs: readonly Sign[],
  begun: Channel,
): Readonly<Record<Channel, readonly string[]>> {
  const said: Record<Channel, string[]> = { final: [], none: [], other: [] };
  let channel = begun;
  for (const [at, { name, end }] of signs.entries()) {
    const behind = text.slice(end, signs[at + 1]?.start ?? text.length);
    if (HEADS.includes(name)) channel = channelIn(behind);
    if (ENDS.includes(name)) channel = "none";
    if (name === "think") channel = "other";
    if (!HEADS.includes(name) && behind.trim() !== "") said[channel].push(behind);
  }
  return said;
}

function signsIn(text: string): Sign[] {
  const found = Array.from(text.matchAll(SIGN), ({ 0: { length }, 1: name = "", index }): Sign => {
    return { start: index, end: index + length, name: name.toLowerCase() };
  });
  if (found.length === 0) return [];
  const mentions = new Mentions(text);
  return found.filter((sign) => !mentions.isQuoted(sign) && !mentions.isCode(sign, false));
}

/** The signs that end the only message of a text. */
function signsAtEnd(text: string, signs: readonly Sign[]): Span[] {
  let end = text.length;
  const last: Span[] = [];
  for (const sign of signs.toReversed()) {
    if (!ENDS.includes(sign.name) || !isBlank(text, sign.end, end)) break;
    last.push(sign);
    end = sign.start;
  }
  return last.reverse();
}

/** The channel in a header such as `commentary to=functions.add <|constrain|>json`. */
function channelIn(header: string): Channel {
  const name = /^\s*(?:assistant\s*)?([a-z]{0,20})/i.exec(header.slice(0, 100))?.[1]?.toLowerCase();
  if (name === "final") return "final";
  return name === "" ? "none" : "other";
}

/**
 * Formats that begin with words. Granite's announcements; harmony after the server removed the signs: `analysisWe
 * need…assistantfinalParis`.
 */
const GRANITE = [/^\s*here(?:'s| is) my thought process:/i, /here(?:'s| is) my response:/gi] as const;
const BARE_HARMONY = [/^\s*(?:assistant)?analysis|[.!?]assistantfinal/, /assistantfinal/g] as const;
const BARE_THOUGHT = /^\s*analysis[A-Z][a-z']{0,20} [a-z]/;

function afterAnnounced(text: string): string {
  for (const [begins, answers] of [GRANITE, BARE_HARMONY]) {
    if (!begins.test(text)) continue;
    let answer = -1;
    for (const { 0: found, index } of text.matchAll(answers)) answer = index + found.length;
    if (answer !== -1) return text.slice(answer);
  }
  return BARE_THOUGHT.test(text) ? "" : text;
}
