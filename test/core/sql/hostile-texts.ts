/** Table-valued functions and long texts. */
import { filled, type Hostile, list, long, nested, rows } from "./hostile-parts.ts";

export const TEXTS: readonly Hostile[] = [
  // Table-valued functions.
  {
    name: "json_each of json_each",
    query: "select count(*) from json_each(?) a, json_each(?1) b, json_each(?1) c",
    params: [JSON.stringify(Array.from({ length: 2000 }, () => 1))],
  },
  {
    name: "json_tree with its texts",
    query: "select sum(length(a.json) + length(b.json)) from json_tree(?) a, json_tree(?1) b",
    params: [JSON.stringify(Array.from({ length: 5000 }, () => 1))],
  },
  {
    name: "json_tree that is deep",
    query: "select sum(length(value)) from json_tree(?)",
    params: [`${"[".repeat(900)}${"1,".repeat(50_000)}1${"]".repeat(900)}`],
  },
  {
    name: "json of a long text that is made",
    query:
      "select count(*) from json_each('[' || replace(hex(zeroblob(2000000)), '00', '1,') || '1]') a, json_each('[' || replace(hex(zeroblob(2000)), '00', '1,') || '1]') b",
  },
  { name: "a virtual table", query: "create virtual table f using fts5(x)" },

  // Long texts.
  {
    name: "random bytes for each row",
    setup: [filled(2000)],
    query: "select sum(length(hex(randomblob(900000)))) from t",
  },
  {
    name: "the same by another name",
    setup: [filled(2000)],
    query: 'select sum(length("zeroblob"(x * 0 + 4000000))) from t',
  },
  {
    name: "a width of very much",
    setup: [filled(2000)],
    query: "select sum(length(printf('%4000000d', x))) from t",
  },
  {
    name: "a width that is given",
    setup: [filled(2000)],
    query: "select sum(length(format('%*d', 4000000, x))) from t",
  },
  {
    name: "a format of a table's",
    setup: [filled(2000)],
    query: "update t set y = '%4000000d'; select sum(length(printf(y, x))) from t",
  },
  {
    name: "replaced again and again",
    query: `select length(${nested(6, (inner) => `replace(${inner}, 'a', '${"a".repeat(60)}')`, "'a'")})`,
  },
  {
    name: "what is not found in a long text",
    query:
      "select instr(replace(hex(zeroblob(2000000)), '00', 'a'), replace(hex(zeroblob(1000000)), '00', 'a') || 'b')",
  },
  {
    name: "what is not replaced in one",
    query:
      "select length(replace(replace(hex(zeroblob(2000000)), '00', 'a'), replace(hex(zeroblob(1000000)), '00', 'a') || 'b', ''))",
  },
  {
    name: "a pattern for each row",
    setup: ["create table l(x); insert into l select replace(hex(zeroblob(1000000)), '00', 'a')", filled(2000)],
    query: "select count(*) from t, l where l.x like '%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' || substr('', t.x) || 'b'",
  },
  {
    name: "a pattern once",
    setup: ["create table l(x); insert into l select replace(hex(zeroblob(500000)), '00', 'a')"],
    query: "select count(*) from l where x like '%a%a%a%a%a%a%a%aaaaaaaaaaaaaaaaaaaaaaaaaaaab'",
    runs: true,
  },
  {
    name: "a glob once",
    setup: ["create table l(x); insert into l select replace(hex(zeroblob(500000)), '00', 'a')"],
    query: "select count(*) from l where x glob '*[a-z]*[a-z]*[a-z]*[!b]*aaaaaaaaaaaaaaaaaaaaab'",
    runs: true,
  },
  {
    name: "characters that are cut off",
    query:
      "select length(trim(replace(hex(zeroblob(2000000)), '00', 'a'), replace(hex(zeroblob(1000000)), '00', 'b') || 'a'))",
  },
  {
    name: "a text of itself",
    query: `select length(x) from (${nested(30, (inner) => `select x || x as x from (${inner})`, "select 'a' as x")})`,
  },
  {
    name: "a table that doubles its texts",
    setup: [filled(2000), "update t set x = hex(zeroblob(2000))"],
    query:
      "update t set x = x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x",
  },
  {
    name: "long texts that are sorted",
    setup: ["create table l(x); insert into l select replace(hex(zeroblob(1000000)), '00', 'a')", filled(2000)],
    query: "select count(*) from (select l.x || t.x as z from t, l order by z)",
  },
  {
    name: "long texts that are compared",
    setup: [
      "create table l(x); ",
      ...Array.from(
        { length: 10 },
        (_, index) => `insert into l select replace(hex(zeroblob(1000000)), '00', 'a') || ${index}`,
      ),
      filled(2000),
    ],
    query: "select count(*) from l a, l b, t where a.x < b.x || t.x",
  },
  {
    name: "a merge of long objects",
    query:
      "select length(json_patch('{' || replace(hex(zeroblob(300000)), '00', '\"a\":1,') || '\"b\":1}', '{' || replace(hex(zeroblob(300000)), '00', '\"c\":1,') || '\"b\":1}'))",
  },
  {
    name: "a long text of each row",
    query: `${rows(5000)} select count(*) from c where instr(?, x || 'y')`,
    params: [long],
  },
  ...["'LocalTime', 'utc'", "y, 'local' || 'time'"].map((modifiers) => ({
    name: `dates that go by the time zone: ${modifiers}`,
    setup: [filled(20_000)],
    query: `select max(datetime(x, 'unixepoch', ${list(4, () => modifiers)})) from t`,
  })),
  {
    name: "a time zone in a few dates",
    setup: [filled(10_000)],
    query: "select max(strftime('%s', x, 'unixepoch', 'start of month', 'localtime', '+1 day')) from t",
    runs: true,
  },
  {
    name: "different rows of long texts",
    setup: [filled(300), "update t set y = hex(zeroblob(100)) || x"],
    query: "select count(*) from (select distinct a.x * b.x, a.y from t a, t b)",
  },
  {
    name: "all dates of a format",
    setup: [filled(3000)],
    query: `select sum(length(strftime('${"%J".repeat(2000)}', x))) from t`,
    runs: true,
  },
];
