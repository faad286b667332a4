/**
 * Splits a text into sentences as the Punkt tokenizer of NLTK does (Kiss & Strunk, 2006), with the abbreviations and the
 * sentence starters of its English model. Of the model's statistics about capital letters it has only the frequent
 * words: README.md names the difference.
 */

const ABBREVIATIONS = new Set(
  (
    "ct m.j t a.c n.h ms p.a.m dr pa p.m u.k st dec u.s.a lt g.k adm p h.m ga tenn yr sen n.c j.j d.h s.g inc vs s.p.a a.t n feb sr " +
    "jan s.a.y n.y col g.f c.o.m.b d ft va r.k e.f chg r.i a.g minn a.h k n.j m l.f f.j gen i.m.s s.a aug j.p okla m.d.c ltd oct s " +
    "vt r.a j.c ariz w.w b.v ore h w.r e.h mrs cie corp w n.v a.d r.j ok e.m w.c ill nov u.s prof conn u.s.s.r mg f.g ph.d g calif " +
    "messrs h.f wash tues sw bros u.n l wis mr sep d.c ave e.l co s.s reps c r.t h.c r wed a.s v fla jr r.h c.v m.b.a rep a.a e " +
    "c.i.t l.a b.f j.b d.w j.k ala f w.va sept mich n.m j.r l.p s.c colo fri a.m g.d kan maj ky a.m.e n.d t.j cos nev"
  ).split(" "),
);
/** They begin a sentence after an abbreviation. */
const STARTERS = new Set(
  (
    "most he since so both these it nevertheless this indeed however instead under similarly some though while when in despite " +
    "although nonetheless thus there if the nor separately moreover but they yet many according sales among meanwhile even i " +
    "her your here without which therefore finally please does were"
  ).split(" "),
);
/** They also occur without a capital: after an initial they are no name. */
const COMMON = new Set(
  (
    "a an that those she we you his its our their my on at by for from with to of and or because as after before until once where " +
    "who what how why all each every several few no not now then today also first second next last let do did is are was be been " +
    "have has had can could will would should may might must"
  ).split(" "),
);

const NON_WORD = `[)";}\\]*:@'({\\[\\u2018\\u2019\\u201c\\u201d\\xab\\xbb!?]`;
const MULTI = "(?:-{2,}|\\.{2,}|(?:\\.\\s){2,}\\.)";
const WORD_END = `\\s|$|${NON_WORD}|${MULTI}|,(?=$|\\s|${NON_WORD}|${MULTI})`;
const TOKEN = new RegExp(`${MULTI}|(?=[^("\`{\\[:;&#*@)}\\]\\-,])\\S+?(?=${WORD_END})|\\S`, "gu");
const CANDIDATE = new RegExp(`[.?!](?=(${NON_WORD})|\\s+(\\S+))`, "gu");
const SPACE = /\s/;
const ASCII_SPACE = /[ \t\n\r\v\f]/;
const CLOSING = /["')\]}\u2018\u2019\u201c\u201d\xab\xbb]+?(?:\s+|(?=--)|$)/muy;

/** The sentences, without the white space between them. */
export function sentencesOf(text: string): string[] {
  return realigned(text, spansOf(text)).map(([start, end]) => text.slice(start, end));
}

type Span = readonly [start: number, end: number];

function spansOf(text: string): Span[] {
  const spans: Span[] = [];
  let start = 0;
  for (const { end, next, context } of candidates(text)) {
    if (!breaksSentence(context)) continue;
    spans.push([start, end]);
    start = next;
  }
  return [...spans, [start, text.trimEnd().length]];
}

interface Candidate {
  readonly end: number;
  /** Where the next sentence would begin. */
  readonly next: number;
  /** The word before, the mark, and what follows. */
  readonly context: string;
}

/** Marks that may end a sentence; of several in one word the last. */
function* candidates(text: string): Generator<Candidate> {
  let word: Span = [0, 0];
  let pending: { readonly word: Span; readonly match: RegExpExecArray } | null = null;
  for (const match of text.matchAll(CANDIDATE)) {
    const space = lastSpace(text, word[1], match.index);
    const start = space > word[1] ? space + 1 : word[0];
    if (pending !== null && pending.word[1] <= start) yield candidateOf(text, pending.word, pending.match);
    word = [start, match.index];
    pending = { word, match };
  }
  if (pending !== null) yield candidateOf(text, pending.word, pending.match);
}

function lastSpace(text: string, from: number, to: number): number {
  for (let at = to - 1; at >= from; at -= 1) if (ASCII_SPACE.test(text[at] ?? "")) return at;
  return from;
}

function candidateOf(text: string, [start, at]: Span, match: RegExpExecArray): Candidate {
  const [mark, closing, following = ""] = match;
  const end = at + mark.length;
  if (closing !== undefined) return { end, next: end, context: text.slice(start, end) + closing };
  let next = end;
  while (SPACE.test(text[next] ?? "")) next += 1;
  return { end, next, context: text.slice(start, next) + following };
}

interface Token {
  readonly text: string;
  /** In lower case; `##number##` for a number. */
  readonly type: string;
  breaks: boolean;
  readonly isAbbreviation: boolean;
  readonly isEllipsis: boolean;
}

/** Whether a sentence ends before the last token. */
function breaksSentence(context: string): boolean {
  const tokens = context.split("\n").flatMap((line) => Array.from(line.matchAll(TOKEN), ([text]) => tokenOf(text)));
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1];
    if (next !== undefined) reconsider(token, next);
  }
  return tokens.slice(0, -1).some(({ breaks }) => breaks);
}

function tokenOf(text: string): Token {
  const lower = text.toLowerCase();
  const type = lower.replace(/^-?[.,]?\p{Nd}[\p{Nd},.-]*\.?$/u, "##number##");
  const isEllipsis = /^\.\.+$/.test(text);
  const isWord = text.endsWith(".") && !text.endsWith("..") && text !== ".";
  const known = lower.slice(0, -1);
  const isAbbreviation = isWord && (ABBREVIATIONS.has(known) || ABBREVIATIONS.has(known.split("-").at(-1) ?? ""));
  return { text, type, breaks: /^[.?!]$/.test(text) || (isWord && !isAbbreviation), isAbbreviation, isEllipsis };
}

/** What comes after a word with a point may show that it ends a sentence, or that it does not. */
function reconsider(token: Token, next: Token): void {
  if (!token.text.endsWith(".")) return;
  const following = next.breaks ? next.type.replace(/(?<=.)\.$/su, "") : next.type;
  const isUpper = /^\p{Lu}/u.test(next.text);
  const isInitial = /^[^\P{L}]\.$/u.test(token.text);
  if ((token.isAbbreviation || token.isEllipsis) && !isInitial) {
    if (isUpper && STARTERS.has(following)) token.breaks = true;
  }
  const isNumber = token.type === "##number##" || token.type === "##number##.";
  if (!isInitial && !isNumber) return;
  const isPunctuation = /^[;:,.!?]$/.test(next.text);
  const isName = isInitial && isUpper && !STARTERS.has(following) && !COMMON.has(following);
  if (isPunctuation || /^\p{Ll}/u.test(next.text) || isName) token.breaks = false;
}

/** Closing quotes and brackets after a mark belong to its sentence. */
function realigned(text: string, spans: readonly Span[]): Span[] {
  const found: Span[] = [];
  let moved = 0;
  for (const [at, [begin, end]] of spans.entries()) {
    const start = begin + moved;
    const following = spans[at + 1];
    CLOSING.lastIndex = 0;
    const closing = following === undefined ? null : CLOSING.exec(text.slice(...following));
    if (closing !== null && following !== undefined) {
      found.push([start, following[0] + closing[0].trimEnd().length]);
      moved = closing[0].length;
    } else {
      moved = 0;
      if (end > start) found.push([start, end]);
    }
  }
  return found;
}
