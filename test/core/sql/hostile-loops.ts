/** Recursion, lists of constants, joins. */
import { filled, type Hostile, rows, ten } from "./hostile-parts.ts";

export const LOOPS: readonly Hostile[] = [
  // Recursion.
  {
    name: "a count without end",
    query: "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c",
  },
  {
    name: "the same without the word",
    query: "with c(x) as (select 1 union all select x + 1 from c) select max(x) from c",
  },
  {
    name: "a count that a condition may end",
    query: "with recursive c(x) as (select 1 union all select x + 1 from c where x < 1e15) select count(*) from c",
  },
  {
    name: "a recursion of the same row",
    query: "with recursive c(x) as (select 1 union all select x from c) select count(*) from c",
  },
  {
    name: "a limit outside of it",
    query: "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c limit 1",
  },
  {
    name: "a limit of none",
    query: "with recursive c(x) as (select 1 union all select x + 1 from c limit -1) select count(*) from c",
  },
  {
    name: "a limit that is computed",
    query: "with recursive c(x) as (select 1 union all select x + 1 from c limit (select 1e15)) select count(*) from c",
  },
  { name: "a limit of very many", query: `${rows(1e12)} select count(*) from c` },
  {
    name: "a limit by a parameter",
    query: "with recursive c(x) as (select 1 union all select x + 1 from c limit ?) select count(*) from c",
    params: [1e12],
  },
  {
    name: "a limit by a parameter that is a text",
    query: "with recursive c(x) as (select 1 union all select x + 1 from c limit ?) select count(*) from c",
    params: ["-1"],
  },
  {
    name: "an offset of very many",
    query:
      "with recursive c(x) as (select 1 union all select x + 1 from c limit 10 offset 1e15) select count(*) from c",
  },
  { name: "three hundred thousand numbers", query: `${rows(300_000)} select count(*) from c`, runs: true },
  {
    name: "a tree of two",
    query:
      "with recursive c(x) as (select 1 union all select x * y.z from c, (select 2 as z union all select 3) y) select count(*) from c",
  },
  {
    name: "a queue in an order",
    query: "with recursive c(x) as (select 1 union all select x + 1 from c order by 1 desc) select count(*) from c",
  },
  {
    name: "a recursion in a subquery",
    query: "select (with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c)",
  },
  {
    name: "a recursion in what is inserted",
    setup: ["create table t(x)"],
    query: "insert into t with recursive c(x) as (select 1 union all select x + 1 from c) select x from c",
  },
  {
    name: "a recursion in a view",
    setup: ["create view v as with recursive c(x) as (select 1 union all select x + 1 from c) select x from c"],
    query: "select count(*) from v",
  },
  {
    name: "a recursion in a trigger",
    setup: [
      "create table t(x)",
      "create view v as with recursive c(x) as (select 1 union all select x + 1 from c) select x from c",
      "create trigger g after insert on t begin select count(*) from v; end",
    ],
    query: "insert into t values (1)",
  },
  {
    name: "a recursion that texts grow in",
    query: "with recursive c(x) as (select 'a' union all select x || x from c limit 40) select max(length(x)) from c",
  },

  // Lists of constants.
  {
    name: "eight lists of ten",
    query: `with ${["a", "b", "c", "d", "e", "f", "g", "h"].map((name) => ten(name)).join(", ")} select count(*) from a, b, c, d, e, f, g, h`,
  },
  {
    name: "one list eight times",
    query: `with ${ten("n")} select count(*) from n a, n b, n c, n d, n e, n f, n g, n h, n i`,
  },
  {
    name: "lists without a with",
    query: `select count(*) from ${Array.from({ length: 9 }, () => "(values (1),(2),(3),(4),(5),(6),(7),(8),(9),(10))").join(", ")}`,
  },
  {
    name: "lists of selects",
    query: `select count(*) from ${Array.from({ length: 18 }, () => "(select 1 union all select 2 union all select 3)").join(", ")}`,
  },
  {
    name: "a list in a list",
    query: `with ${ten("n")}, m as materialized (select a.x from n a, n b, n c, n d) select count(*) from m a, m b`,
  },

  // Joins.
  {
    name: "a table by itself, three times",
    setup: [filled(1000)],
    query: "select count(*) from t a, t b, t c",
  },
  {
    name: "a table by itself, twice",
    setup: [filled(1500)],
    query: "select count(*) from t a, t b",
    runs: true,
  },
  {
    name: "a join by what all rows share",
    setup: [filled(3000)],
    query: "select count(*) from t a join t b on a.y = b.y join t c on c.y = b.y",
  },
  {
    name: "a join by an index of one value",
    setup: [filled(5000), "create index i on t(y); update t set y = 0"],
    query: "select count(*) from t a join t b on a.y = b.y join t c on c.y = b.y",
  },
  {
    name: "the same with names that differ in case",
    setup: [
      filled(5000),
      "create table n(x text collate nocase); create index i on n(x)",
      "insert into n select substr('aA', 1 + x % 2, 1) || substr('bB', 1 + x % 3 % 2, 1) from t",
    ],
    query: "select count(*) from t, n a join n b on a.x = b.x",
  },
  {
    name: "outer joins",
    setup: [filled(1000)],
    query: "select count(*) from t a left join t b on a.x <> b.x full join t c on c.x <> b.x",
  },
  {
    name: "a subquery of each row in one of each row",
    setup: [filled(2000)],
    query:
      "select count((select count(*) from t b where b.x > a.x and exists (select 1 from t c where c.y + b.y = -1))) from t a",
  },
  {
    name: "a subquery in an order",
    setup: [filled(20_000)],
    query: "select x from t a order by (select count(*) from t b where b.x <> a.x) limit 1",
  },
  {
    name: "conditions on each pair",
    setup: [filled(20_000)],
    query: "delete from t where exists (select 1 from t b where b.x + t.x = -1)",
  },
  {
    name: "an update from itself",
    setup: [filled(20_000)],
    query: "update t set x = b.x from t b where b.x + t.x = -1",
  },
  {
    name: "rows that are given back",
    setup: [filled(1000)],
    query: "insert into t(x) select a.x from t a, t b, t c returning (select count(*) from t)",
  },
  {
    name: "a list of what is in",
    setup: [filled(20_000)],
    query: "select count(*) from t a where a.x not in (select b.x + a.y * 0 from t b)",
  },
  {
    name: "sixty-four tables",
    setup: ["create table t(x, y); insert into t values (1, 1), (2, 2)"],
    query: `select count(*) from ${Array.from({ length: 64 }, (_, index) => `t a${index}`).join(", ")}`,
  },
  {
    name: "windows over windows",
    setup: [filled(5000)],
    query:
      "select sum(s) over (order by x) from (select x, sum(x) over (order by y rows between unbounded preceding and unbounded following exclude current row) as s from t)",
  },
  {
    name: "a window that gathers texts",
    setup: [filled(5000)],
    query:
      "select max(length(g)) from (select group_concat(x || 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') over (order by id) as g from t)",
  },
];
