/**
 * Hostile statements: each would compute for long, or forever. Some come in pairs, one above the limit and one just
 * below. `setup` is a separate call before.
 */
export interface Hostile {
  readonly name: string;
  readonly setup?: readonly string[];
  readonly query: string;
  readonly params?: readonly (string | number)[];
  /** Statements that are harmless in effect: they are run, and end. */
  readonly runs?: true;
}

export const ten = (name: string) => `${name}(x) as (values (1),(2),(3),(4),(5),(6),(7),(8),(9),(10))`;
export const rows = (count: number) => `with recursive c(x) as (select 1 union all select x + 1 from c limit ${count})`;
export const filled = (count: number) =>
  `create table t(id integer primary key, x, y); insert into t(x, y) ${rows(count)} select x, x % 7 from c`;
export const chain = (length: number, link: (from: string) => string) =>
  Array.from({ length }, (_, index) => `, c${index + 1}(x) as (${link(`c${index}`)})`).join("");
export const nested = (length: number, level: (inner: string) => string, inner: string): string =>
  length === 0 ? inner : level(nested(length - 1, level, inner));
export const views = (length: number, link: (from: string) => string) =>
  Array.from({ length }, (_, index) => `create view v${index + 1}(x) as ${link(`v${index}`)}`);
export const long = "x".repeat(100_000);
export const list = (count: number, item: (at: number) => string, between = ", ") =>
  Array.from({ length: count }, (_, at) => item(at)).join(between);
export const halves = (depth: number, term: string): string =>
  depth === 0 ? term : `(${halves(depth - 1, term)} or ${halves(depth - 1, term)})`;
