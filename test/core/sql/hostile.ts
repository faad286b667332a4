/**
 * Statements that mean harm: each computes for long, or without end, or would if it were let. Of some there are two, one that is
 * too much and one that is just not. `setup` is a call of its own, before.
 */
export interface Hostile {
  readonly name: string;
  readonly setup?: readonly string[];
  readonly query: string;
  readonly params?: readonly (string | number)[];
  /** Some are harmless in effect: they are run, and end. */
  readonly runs?: true;
}

const ten = (name: string) =>
  `${name}(x) as (values (1),(2),(3),(4),(5),(6),(7),(8),(9),(10))`;
const rows = (count: number) =>
  `with recursive c(x) as (select 1 union all select x + 1 from c limit ${count})`;
const filled = (count: number) =>
  `create table t(id integer primary key, x, y); insert into t(x, y) ${rows(count)} select x, x % 7 from c`;
const chain = (length: number, link: (from: string) => string) =>
  Array.from({ length }, (_, index) => `, c${index + 1}(x) as (${link(`c${index}`)})`).join("");
const nested = (length: number, level: (inner: string) => string, inner: string): string =>
  length === 0 ? inner : level(nested(length - 1, level, inner));
const views = (length: number, link: (from: string) => string) =>
  Array.from({ length }, (_, index) => `create view v${index + 1}(x) as ${link(`v${index}`)}`);
const long = "x".repeat(100_000);

export const HOSTILE: readonly Hostile[] = [
  // What recurses.
  { name: "a count without end", query: "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c" },
  { name: "the same without the word", query: "with c(x) as (select 1 union all select x + 1 from c) select max(x) from c" },
  { name: "a count that a condition may end", query: "with recursive c(x) as (select 1 union all select x + 1 from c where x < 1e15) select count(*) from c" },
  { name: "a recursion of the same row", query: "with recursive c(x) as (select 1 union all select x from c) select count(*) from c" },
  { name: "a limit outside of it", query: "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c limit 1" },
  { name: "a limit of none", query: "with recursive c(x) as (select 1 union all select x + 1 from c limit -1) select count(*) from c" },
  { name: "a limit that is computed", query: "with recursive c(x) as (select 1 union all select x + 1 from c limit (select 1e15)) select count(*) from c" },
  { name: "a limit of very many", query: `${rows(1e12)} select count(*) from c` },
  { name: "a limit by a parameter", query: "with recursive c(x) as (select 1 union all select x + 1 from c limit ?) select count(*) from c", params: [1e12] },
  { name: "a limit by a parameter that is a text", query: "with recursive c(x) as (select 1 union all select x + 1 from c limit ?) select count(*) from c", params: ["-1"] },
  { name: "an offset of very many", query: "with recursive c(x) as (select 1 union all select x + 1 from c limit 10 offset 1e15) select count(*) from c" },
  { name: "half a million numbers", query: `${rows(500_000)} select count(*) from c`, runs: true },
  { name: "a tree of two", query: "with recursive c(x) as (select 1 union all select x * y.z from c, (select 2 as z union all select 3) y) select count(*) from c" },
  { name: "a queue in an order", query: "with recursive c(x) as (select 1 union all select x + 1 from c order by 1 desc) select count(*) from c" },
  { name: "a recursion in a subquery", query: "select (with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c)" },
  { name: "a recursion in what is inserted", setup: ["create table t(x)"], query: "insert into t with recursive c(x) as (select 1 union all select x + 1 from c) select x from c" },
  { name: "a recursion in a view", setup: ["create view v as with recursive c(x) as (select 1 union all select x + 1 from c) select x from c"], query: "select count(*) from v" },
  { name: "a recursion in a trigger", setup: ["create table t(x)", "create view v as with recursive c(x) as (select 1 union all select x + 1 from c) select x from c", "create trigger g after insert on t begin select count(*) from v; end"], query: "insert into t values (1)" },
  { name: "a recursion that texts grow in", query: "with recursive c(x) as (select 'a' union all select x || x from c limit 40) select max(length(x)) from c" },

  // Lists of constants.
  { name: "eight lists of ten", query: `with ${["a", "b", "c", "d", "e", "f", "g", "h"].map((name) => ten(name)).join(", ")} select count(*) from a, b, c, d, e, f, g, h` },
  { name: "one list eight times", query: `with ${ten("n")} select count(*) from n a, n b, n c, n d, n e, n f, n g, n h, n i` },
  { name: "lists without a with", query: `select count(*) from ${Array.from({ length: 9 }, () => "(values (1),(2),(3),(4),(5),(6),(7),(8),(9),(10))").join(", ")}` },
  { name: "lists of selects", query: `select count(*) from ${Array.from({ length: 18 }, () => "(select 1 union all select 2 union all select 3)").join(", ")}` },
  { name: "a list in a list", query: `with ${ten("n")}, m as materialized (select a.x from n a, n b, n c, n d) select count(*) from m a, m b` },

  // Joins.
  { name: "a table by itself, three times", setup: [filled(1000)], query: "select count(*) from t a, t b, t c" },
  { name: "a table by itself, twice", setup: [filled(3000)], query: "select count(*) from t a, t b", runs: true },
  { name: "a join by what all rows share", setup: [filled(3000)], query: "select count(*) from t a join t b on a.y = b.y join t c on c.y = b.y" },
  { name: "a join by an index of one value", setup: [filled(5000), "create index i on t(y); update t set y = 0"], query: "select count(*) from t a join t b on a.y = b.y join t c on c.y = b.y" },
  { name: "the same with names that differ in case", setup: [filled(5000), "create table n(x text collate nocase); create index i on n(x)", "insert into n select substr('aA', 1 + x % 2, 1) || substr('bB', 1 + x % 3 % 2, 1) from t"], query: "select count(*) from t, n a join n b on a.x = b.x" },
  { name: "outer joins", setup: [filled(1000)], query: "select count(*) from t a left join t b on a.x <> b.x full join t c on c.x <> b.x" },
  { name: "a subquery of each row in one of each row", setup: [filled(2000)], query: "select count((select count(*) from t b where b.x > a.x and exists (select 1 from t c where c.y + b.y = -1))) from t a" },
  { name: "a subquery in an order", setup: [filled(20_000)], query: "select x from t a order by (select count(*) from t b where b.x <> a.x) limit 1" },
  { name: "conditions on each pair", setup: [filled(20_000)], query: "delete from t where exists (select 1 from t b where b.x + t.x = -1)" },
  { name: "an update from itself", setup: [filled(20_000)], query: "update t set x = b.x from t b where b.x + t.x = -1" },
  { name: "rows that are given back", setup: [filled(1000)], query: "insert into t(x) select a.x from t a, t b, t c returning (select count(*) from t)" },
  { name: "a list of what is in", setup: [filled(20_000)], query: "select count(*) from t a where a.x not in (select b.x + a.y * 0 from t b)" },
  { name: "sixty-four tables", setup: ["create table t(x, y); insert into t values (1, 1), (2, 2)"], query: `select count(*) from ${Array.from({ length: 64 }, (_, index) => `t a${index}`).join(", ")}` },
  { name: "windows over windows", setup: [filled(5000)], query: "select sum(s) over (order by x) from (select x, sum(x) over (order by y rows between unbounded preceding and unbounded following exclude current row) as s from t)" },
  { name: "a window that gathers texts", setup: [filled(5000)], query: "select max(length(g)) from (select group_concat(x || 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') over (order by id) as g from t)" },

  // Table-valued functions.
  { name: "json_each of json_each", query: "select count(*) from json_each(?) a, json_each(?1) b, json_each(?1) c", params: [JSON.stringify(Array.from({ length: 2000 }, () => 1))] },
  { name: "json_tree with its texts", query: "select sum(length(a.json) + length(b.json)) from json_tree(?) a, json_tree(?1) b", params: [JSON.stringify(Array.from({ length: 5000 }, () => 1))] },
  { name: "json_tree that is deep", query: "select sum(length(value)) from json_tree(?)", params: [`${"[".repeat(900)}${"1,".repeat(50_000)}1${"]".repeat(900)}`] },
  { name: "json of a long text that is made", query: "select count(*) from json_each('[' || replace(hex(zeroblob(2000000)), '00', '1,') || '1]') a, json_each('[' || replace(hex(zeroblob(2000)), '00', '1,') || '1]') b" },
  { name: "a virtual table", query: "create virtual table f using fts5(x)" },

  // Long texts.
  { name: "random bytes for each row", setup: [filled(2000)], query: "select sum(length(hex(randomblob(900000)))) from t" },
  { name: "the same by another name", setup: [filled(2000)], query: "select sum(length(\"zeroblob\"(x * 0 + 4000000))) from t" },
  { name: "a width of very much", setup: [filled(2000)], query: "select sum(length(printf('%4000000d', x))) from t" },
  { name: "a width that is given", setup: [filled(2000)], query: "select sum(length(format('%*d', 4000000, x))) from t" },
  { name: "a format of a table's", setup: [filled(2000)], query: "update t set y = '%4000000d'; select sum(length(printf(y, x))) from t" },
  { name: "replaced again and again", query: `select length(${nested(6, (inner) => `replace(${inner}, 'a', '${"a".repeat(60)}')`, "'a'")})` },
  { name: "what is not found in a long text", query: "select instr(replace(hex(zeroblob(2000000)), '00', 'a'), replace(hex(zeroblob(1000000)), '00', 'a') || 'b')" },
  { name: "what is not replaced in one", query: "select length(replace(replace(hex(zeroblob(2000000)), '00', 'a'), replace(hex(zeroblob(1000000)), '00', 'a') || 'b', ''))" },
  { name: "a pattern for each row", setup: ["create table l(x); insert into l select replace(hex(zeroblob(1000000)), '00', 'a')", filled(2000)], query: "select count(*) from t, l where l.x like '%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' || substr('', t.x) || 'b'" },
  { name: "a pattern once", setup: ["create table l(x); insert into l select replace(hex(zeroblob(1000000)), '00', 'a')"], query: "select count(*) from l where x like '%a%a%a%a%a%a%a%aaaaaaaaaaaaaaaaaaaaaaaaaaaab'", runs: true },
  { name: "a glob once", setup: ["create table l(x); insert into l select replace(hex(zeroblob(1000000)), '00', 'a')"], query: "select count(*) from l where x glob '*[a-z]*[a-z]*[a-z]*[!b]*aaaaaaaaaaaaaaaaaaaaab'", runs: true },
  { name: "characters that are cut off", query: "select length(trim(replace(hex(zeroblob(2000000)), '00', 'a'), replace(hex(zeroblob(1000000)), '00', 'b') || 'a'))" },
  { name: "a text of itself", query: `select length(x) from (${nested(30, (inner) => `select x || x as x from (${inner})`, "select 'a' as x")})` },
  { name: "a table that doubles its texts", setup: [filled(2000), "update t set x = hex(zeroblob(2000))"], query: "update t set x = x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x" },
  { name: "long texts that are sorted", setup: ["create table l(x); insert into l select replace(hex(zeroblob(1000000)), '00', 'a')", filled(2000)], query: "select count(*) from (select l.x || t.x as z from t, l order by z)" },
  { name: "long texts that are compared", setup: ["create table l(x); ", ...Array.from({ length: 10 }, (_, index) => `insert into l select replace(hex(zeroblob(1000000)), '00', 'a') || ${index}`), filled(2000)], query: "select count(*) from l a, l b, t where a.x < b.x || t.x" },
  { name: "a merge of long objects", query: "select length(json_patch('{' || replace(hex(zeroblob(300000)), '00', '\"a\":1,') || '\"b\":1}', '{' || replace(hex(zeroblob(300000)), '00', '\"c\":1,') || '\"b\":1}'))" },
  { name: "a long text of each row", query: `${rows(5000)} select count(*) from c where instr(?, x || 'y')`, params: [long] },
  { name: "all dates of a format", setup: [filled(5000)], query: `select sum(length(strftime('${"%J".repeat(2000)}', x))) from t` },

  // What grows.
  { name: "a table by its own square", setup: [filled(3000)], query: "insert into t(x) select a.x from t a, t b" },
  { name: "a table that doubles", setup: [filled(100)], query: Array.from({ length: 20 }, () => "insert into t(x) select x from t").join("; ") },
  { name: "statements one after the other", query: `create table t(x); insert into t ${rows(2000)} select x from c; select count(*) from t a, t b, t c` },
  { name: "a trigger that reads all for each", setup: [filled(20_000), "create trigger g after insert on t begin update t set y = (select count(*) from t where x <> new.x) where id = new.id; end"], query: "insert into t(x) select x from t" },
  { name: "a trigger that doubles another", setup: ["create table a(x); create table b(x); insert into b values (1)", "create trigger g after insert on a begin insert into b select x from b; end"], query: "insert into a values (1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(1),(2),(3),(4),(5),(6),(7),(8),(9),(10)" },
  { name: "triggers in triggers", setup: ["create table a0(x); create table a1(x); create table a2(x); create table a3(x); create table a4(x); create table a5(x)", filled(30), ...[0, 1, 2, 3, 4].map((index) => `create trigger g${index} after insert on a${index} begin insert into a${index + 1} select x from t; end`)], query: "insert into a0 values (1)" },
  { name: "triggers that double a text", setup: ["create table t(x); insert into t values ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')", `create table s(x); create trigger g after insert on s begin ${"update t set x = x || x; ".repeat(30)}end`], query: "insert into s values (1)" },
  { name: "keys that are looked for in all rows", setup: ["create table p(id integer primary key); create table q(x, p references p(id))", `insert into p ${rows(20_000)} select x from c`, `insert into q ${rows(20_000)} select x, null from c`], query: "delete from p" },
  { name: "keys that take their children along", setup: ["create table p(id integer primary key); create table q(x, p references p(id) on delete cascade)", `insert into p ${rows(20_000)} select x from c`, `insert into q ${rows(20_000)} select x, null from c`], query: "delete from p" },
  { name: "keys that take themselves along", setup: ["create table p(id integer primary key, up references p(id) on delete cascade)", "insert into p values (1, null)", `insert into p ${rows(5000)} select x, x - 1 from c where x > 1`], query: "delete from p where id = 2" },
  { name: "an index of a long text", setup: [filled(20_000)], query: "create index i on t(hex(zeroblob(100000)) || x)" },
  { name: "a check of a long text", setup: ["create table k(x, check (instr(replace(hex(zeroblob(1000000)), '00', 'a'), replace(hex(zeroblob(500000)), '00', 'a') || x) = 0))"], query: "insert into k values ('b')" },
  { name: "a column that is computed from a long text", setup: ["create table k(x, y as (length(replace(hex(zeroblob(1000000)), '00', x))))", "insert into k select value from json_each('[1,2,3,4,5,6,7,8,9,10]')"], query: "select sum(a.y + b.y + c.y) from k a, k b, k c" },
  { name: "columns of columns", setup: [], query: `create table k(c0${Array.from({ length: 40 }, (_, index) => `, c${index + 1} as (c${index} || c${index})`).join("")}); insert into k(c0) values (1); select c40 from k` },
  { name: "a column with a check, added", setup: [filled(2000)], query: "alter table t add column z check (instr(hex(zeroblob(2000000)), hex(zeroblob(1000000)) || x) = 0)" },

  // What is written out before anything is known of it.
  { name: "parts of a with in each other, joined", query: `with c0(x) as (select 1)${chain(24, (from) => `select a.x from ${from} a, ${from} b`)} select * from c24` },
  { name: "parts of a with in each other, united", query: `with c0(x) as (select 1)${chain(24, (from) => `select x from ${from} union all select x from ${from}`)} select * from c24` },
  { name: "parts of a with in each other, asked", query: `with c0(x) as (select 1)${chain(24, (from) => `select x from ${from} where x in ${from}`)} select * from c24` },
  { name: "the same with names that hide others", query: "with a as (select 1), b as (with b as (select * from a x, a y) select * from b x, b y) select * from b" },
  { name: "views in each other", setup: ["create view v0(x) as select 1", ...views(20, (from) => `select a.x from ${from} a, ${from} b`)], query: "select * from v20" },
  { name: "views in each other, in a trigger", setup: ["create table t(x)", "create view v0(x) as select 1", ...views(20, (from) => `select x from ${from} where x in ${from}`), "create trigger g after insert on t begin select * from v20; end"], query: "insert into t values (1)" },
  { name: "columns of subqueries", setup: ["create table t(x)"], query: nested(40, (inner) => `select x + x as x from (${inner})`, "select x from t") },
  { name: "a long name of a column", setup: ["create table t(x)"], query: `select ${Array.from({ length: 2000 }, () => "(y)").join(",")} from (select ${nested(60, (inner) => `(${inner}+x)`, "x")} as y from t)` },
];
