/**
 * What a statement would cost, by SQLite's own plan of it, before it runs: a statement that computes without end and gives no
 * row cannot be stopped from inside an isolate.
 *
 * Invariants. The estimate is of rows visited, from above: every loop is taken to go through the largest table, or the largest
 * intermediate result, unless it looks a row up by its key. The same statement on the same database costs the same. A
 * function that makes megabytes of nothing costs milliseconds a call, so calls of those are counted too.
 */
import { type Sql, ToolCallError } from "rollcall";

/** SQLite visits a few million rows in a second. */
const MOST_ROWS = 3_000_000;
/** What a function that gives rows (`json_each`) may give. */
const ROWS_OF_A_FUNCTION = 10_000;

/** Functions whose result may be far larger than what they are given, and how often they may be called. */
const MAKES_LONG_TEXTS = /^["`[]?(randomblob|zeroblob|hex|quote|replace|printf|format)["`\]]?$/i;
const MOST_LONG_TEXTS = 500;

interface Step {
  readonly id: number;
  readonly parent: number;
  readonly detail: string;
}

/** Throws ToolCallError for what is more than one statement, recurses, or would visit too many rows. */
export async function refuseTooMuchWork(sql: string, db: Sql): Promise<void> {
  const tokens = tokensOf(sql);
  if (statementsIn(tokens) > 1) throw new ToolCallError("one statement a call");
  const plan = await db.exec(`explain query plan ${sql}`);
  const steps = plan.map(({ id, parent, detail }) => ({
    id: Number(id),
    parent: Number(parent),
    detail: String(detail),
  }));
  if (steps.some(({ detail }) => detail === "RECURSIVE STEP")) {
    throw new ToolCallError("recursive queries are not offered here");
  }
  const longTexts = tokens.filter(
    (token, at) => tokens[at + 1] === "(" && MAKES_LONG_TEXTS.test(token),
  ).length;
  const loops = steps.filter(({ detail }) => isLoop(detail)).length;
  // One loop over one table is never too much.
  if (loops < 2 && longTexts === 0) return;
  const rows = estimate(steps, await largestTable(db));
  refuseLongTexts(longTexts, rows, tokens);
  if (rows <= MOST_ROWS) return;
  throw new ToolCallError(
    `the statement would visit about ${rows.toPrecision(2)} rows: join fewer tables at once, or by their keys`,
  );
}

/** In a view or a default, where nothing is visited yet, they would be called later and not be counted. */
function refuseLongTexts(count: number, rows: number, tokens: readonly string[]): void {
  if (count === 0) return;
  const creates = tokens[0]?.toLowerCase() === "create" && rows === 1;
  if (!creates && count * rows <= MOST_LONG_TEXTS) return;
  throw new ToolCallError(
    "randomblob, zeroblob, hex, quote, replace, printf and format may be called for few rows only",
  );
}

/** Quoted texts and names, comments and words; anything else a character at a time. */
const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\s+|\w+|[\s\S]/g;

/** Without spaces and comments. */
function tokensOf(sql: string): string[] {
  return (sql.match(TOKENS) ?? []).filter((token) => !/^(\s|--|\/\*)/.test(token));
}

function statementsIn(tokens: readonly string[]): number {
  return tokens.filter((token, index) => token !== ";" && (tokens[index - 1] ?? ";") === ";")
    .length;
}

/** Loops of one level are nested in each other, and so is what is asked anew for each row; the rest is done once. */
function estimate(steps: readonly Step[], largest: number): number {
  const work = (parent: number): number => {
    const own = steps.filter((step) => step.parent === parent);
    const once = own.filter(({ detail }) => !isNested(detail)).map(({ id }) => work(id));
    const size = Math.max(largest, ...once);
    const nested = own
      .filter(({ detail }) => isNested(detail))
      .map(({ id, detail }) => (isLoop(detail) ? rowsOf(detail, size) : work(id)));
    const rows = nested.reduce((product, factor) => product * Math.max(1, factor), 1);
    return once.reduce((sum, more) => sum + more, rows);
  };
  return work(0);
}

function isNested(detail: string): boolean {
  return isLoop(detail) || detail.startsWith("CORRELATED");
}

function isLoop(detail: string): boolean {
  return /^(SCAN|SEARCH)\b/.test(detail) && !/CONSTANT ROW/.test(detail);
}

function rowsOf(detail: string, size: number): number {
  if (/USING INTEGER PRIMARY KEY \(rowid=\?\)/.test(detail)) return 1;
  return /VIRTUAL TABLE/.test(detail) ? Math.max(size, ROWS_OF_A_FUNCTION) : size;
}

async function largestTable(db: Sql): Promise<number> {
  const tables = await db.exec(
    "select name from sqlite_master where type = 'table' and substr(name, 1, 4) <> '_cf_'",
  );
  const counts = tables.map(({ name }) => {
    const quoted = String(name).replaceAll('"', '""');
    return `(select count(*) from "${quoted}")`;
  });
  if (counts.length === 0) return 1;
  const [row] = await db.exec(`select max(1, ${counts.join(", ")}) as rows`);
  return Number(row?.["rows"]);
}
