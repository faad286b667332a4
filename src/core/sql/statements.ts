/**
 * The text of SQL, as far as it is known before SQLite reads it: its tokens, and where one statement ends.
 *
 * Invariants. What is taken for a statement holds at most one for SQLite too: a `;` ends it wherever it is not part of a quoted
 * text, of a comment, or of a trigger's body. Where the two would read a text differently, SQLite finds a syntax error.
 */

/** Quoted texts and names, comments, spaces, words; anything else a character at a time. */
const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\s+|[\p{L}_$][\p{L}\p{N}_$]*|[\s\S]/gu;

export interface Statement {
  readonly text: string;
  /** Without spaces and comments. */
  readonly tokens: readonly string[];
}

/** For an environment that takes one statement at a time. */
export function sqlStatements(query: string): readonly string[] {
  return statementsOf(query).map(({ text }) => text.trim());
}

export function statementsOf(query: string): readonly Statement[] {
  const found: Statement[] = [];
  let text = "";
  let tokens: string[] = [];
  for (const [token] of query.matchAll(TOKENS)) {
    text += token;
    if (/^(\s|--|\/\*)/.test(token)) continue;
    if (token === ";" && (!createsTrigger(tokens) || endsBody(tokens))) {
      if (tokens.length > 0) found.push({ text: text.slice(0, -1), tokens });
      [text, tokens] = ["", []];
    } else {
      tokens.push(token);
    }
  }
  if (tokens.length > 0) found.push({ text, tokens });
  return found;
}

function createsTrigger(tokens: readonly string[]): boolean {
  return /^create (temp |temporary )?trigger /i.test(`${tokens.slice(0, 3).join(" ")} `);
}

/** As SQLite has it: `end` counts only after a `;`, for `case … end` is no end of a body. */
function endsBody(tokens: readonly string[]): boolean {
  return tokens.at(-1)?.toLowerCase() === "end" && tokens.at(-2) === ";";
}

/** A name as SQLite compares it, or null for what is none. A text in single quotes is one only where a table is named. */
export function nameOf(token: string): string | null {
  if (/^[\p{L}_$]/u.test(token)) return token.toLowerCase();
  const [open = ""] = token;
  if (token.length < 2 || !"\"'`[".includes(open)) return null;
  const inner = token.slice(1, -1);
  return (open === "[" ? inner : inner.replaceAll(open + open, open)).toLowerCase();
}
