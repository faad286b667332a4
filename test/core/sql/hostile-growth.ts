/** Statements with many added rows, fired triggers, or expanded views. */
import { chain, filled, type Hostile, halves, list, nested, rows, views } from "./hostile-parts.ts";

export const GROWTH: readonly Hostile[] = [
  // Growing tables and texts.
  {
    name: "a table by its own square",
    setup: [filled(3000)],
    query: "insert into t(x) select a.x from t a, t b",
  },
  {
    name: "a table that doubles",
    setup: [filled(100)],
    query: Array.from({ length: 20 }, () => "insert into t(x) select x from t").join("; "),
  },
  {
    name: "statements one after the other",
    query: `create table t(x); insert into t ${rows(2000)} select x from c; select count(*) from t a, t b, t c`,
  },
  {
    name: "a trigger that reads all for each",
    setup: [
      filled(20_000),
      "create trigger g after insert on t begin update t set y = (select count(*) from t where x <> new.x) where id = new.id; end",
    ],
    query: "insert into t(x) select x from t",
  },
  {
    name: "a trigger that doubles another",
    setup: [
      "create table a(x); create table b(x); insert into b values (1)",
      "create trigger g after insert on a begin insert into b select x from b; end",
    ],
    query:
      "insert into a values (1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(1),(2),(3),(4),(5),(6),(7),(8),(9),(10)",
  },
  {
    name: "triggers in triggers",
    setup: [
      "create table a0(x); create table a1(x); create table a2(x); create table a3(x); create table a4(x); create table a5(x)",
      filled(30),
      ...[0, 1, 2, 3, 4].map(
        (index) =>
          `create trigger g${index} after insert on a${index} begin insert into a${index + 1} select x from t; end`,
      ),
    ],
    query: "insert into a0 values (1)",
  },
  {
    name: "triggers that double a text",
    setup: [
      "create table t(x); insert into t values ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
      `create table s(x); create trigger g after insert on s begin ${"update t set x = x || x; ".repeat(30)}end`,
    ],
    query: "insert into s values (1)",
  },
  {
    name: "keys that are looked for in all rows",
    setup: [
      "create table p(id integer primary key); create table q(x, p references p(id))",
      `insert into p ${rows(20_000)} select x from c`,
      `insert into q ${rows(20_000)} select x, null from c`,
    ],
    query: "delete from p",
  },
  {
    name: "keys that take their children along",
    setup: [
      "create table p(id integer primary key); create table q(x, p references p(id) on delete cascade)",
      `insert into p ${rows(20_000)} select x from c`,
      `insert into q ${rows(20_000)} select x, null from c`,
    ],
    query: "delete from p",
  },
  {
    name: "keys that take themselves along",
    setup: [
      "create table p(id integer primary key, up references p(id) on delete cascade)",
      "insert into p values (1, null)",
      `insert into p ${rows(5000)} select x, x - 1 from c where x > 1`,
    ],
    query: "delete from p where id = 2",
  },
  {
    name: "an index of a long text",
    setup: [filled(20_000)],
    query: "create index i on t(hex(zeroblob(100000)) || x)",
  },
  {
    name: "a check of a long text",
    setup: [
      "create table k(x, check (instr(replace(hex(zeroblob(1000000)), '00', 'a'), replace(hex(zeroblob(500000)), '00', 'a') || x) = 0))",
    ],
    query: "insert into k values ('b')",
  },
  {
    name: "a column that is computed from a long text",
    setup: [
      "create table k(x, y as (length(replace(hex(zeroblob(1000000)), '00', x))))",
      "insert into k select value from json_each('[1,2,3,4,5,6,7,8,9,10]')",
    ],
    query: "select sum(a.y + b.y + c.y) from k a, k b, k c",
  },
  {
    name: "columns of columns",
    setup: [],
    query: `create table k(c0${Array.from({ length: 40 }, (_, index) => `, c${index + 1} as (c${index} || c${index})`).join("")}); insert into k(c0) values (1); select c40 from k`,
  },
  {
    name: "a column with a check, added",
    setup: [filled(2000)],
    query: "alter table t add column z check (instr(hex(zeroblob(2000000)), hex(zeroblob(1000000)) || x) = 0)",
  },

  // Expansions before the statement runs.
  {
    name: "parts of a with in each other, joined",
    query: `with c0(x) as (select 1)${chain(24, (from) => `select a.x from ${from} a, ${from} b`)} select * from c24`,
  },
  {
    name: "parts of a with in each other, united",
    query: `with c0(x) as (select 1)${chain(24, (from) => `select x from ${from} union all select x from ${from}`)} select * from c24`,
  },
  {
    name: "parts of a with in each other, asked",
    query: `with c0(x) as (select 1)${chain(24, (from) => `select x from ${from} where x in ${from}`)} select * from c24`,
  },
  {
    name: "the same with names that hide others",
    query: "with a as (select 1), b as (with b as (select * from a x, a y) select * from b x, b y) select * from b",
  },
  {
    name: "views in each other",
    setup: ["create view v0(x) as select 1", ...views(20, (from) => `select a.x from ${from} a, ${from} b`)],
    query: "select * from v20",
  },
  {
    name: "views in each other, in a trigger",
    setup: [
      "create table t(x)",
      "create view v0(x) as select 1",
      ...views(20, (from) => `select x from ${from} where x in ${from}`),
      "create trigger g after insert on t begin select * from v20; end",
    ],
    query: "insert into t values (1)",
  },
  {
    name: "columns of subqueries",
    setup: ["create table t(x)"],
    query: nested(40, (inner) => `select x + x as x from (${inner})`, "select x from t"),
  },
  {
    name: "a long name of a column",
    setup: ["create table t(x)"],
    query: `select ${Array.from({ length: 2000 }, () => "(y)").join(",")} from (select ${nested(60, (inner) => `(${inner}+x)`, "x")} as y from t)`,
  },
  {
    name: "a thousand conditions, each with an index",
    setup: ["create table t(a, b, c)", "create index i on t(a, b)", "create index j on t(c)"],
    query: `select count(*) from t where ${halves(9, "(a = 1 and b = 2 or c = 3)")}`,
    runs: true,
  },
  {
    name: "sixty tables in every order",
    setup: ["create table t(a, b)", "create index i on t(a)", "create index j on t(b, a)"],
    query: Array.from(
      { length: 2 },
      () =>
        `select count(*) from ${list(60, (at) => `t t${at}`)} where ${list(59, (at) => `t0.a = t${at + 1}.a`, " and ")}`,
    ).join("; "),
  },
];
