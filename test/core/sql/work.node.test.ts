/** On `node:sqlite`; test/kernel/rollout/rollout-sql.test.ts does the same on the platform's SQLite. */
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { NO_JOURNAL, RolloutSql, type SqlValue } from "../../../src/core/environments/rollout-sql.ts";
import { databaseOf } from "../../../src/core/sql/database.ts";
import { HOSTILE } from "./hostile.ts";

function opened() {
  const sql = new RolloutSql(databaseOf(new DatabaseSync(":memory:")), NO_JOURNAL);
  let calls = 0;
  return (query: string, params: readonly SqlValue[] = []) => {
    calls += 1;
    return sql.exec({ effect: `reply:${calls}`, call: 0 }, query, params);
  };
}

const REFUSED =
  /too much work|may never end|be (estimated|added)|written out|more than one view|fires too many|out of memory|too complex|too big|too many/;

test.each(HOSTILE)("a statement that would compute for long is refused before it runs: $name", (hostile) => {
  const { setup = [], query, params, runs } = hostile;
  const exec = opened();
  const all = () => {
    for (const text of setup) exec(text);
    return exec(query, params);
  };
  if (runs === true) expect(all()).toHaveLength(1);
  else expect(all).toThrow(REFUSED);
});

/** A shop of realistic size. */
const SHOP = `
  create table customers(id integer primary key, name text, city text, note text);
  create table orders(id integer primary key, customer_id integer references customers(id), cents integer, status text, day text);
  create table items(id integer primary key, order_id integer references orders(id), sku text, n integer);
  create index item_orders on items(order_id);
  create table regions(city text, label text);
  insert into regions values ('city 1', 'north'), ('city 2', 'south');
  create table changes(id integer primary key, what text, at text);
  insert into customers with recursive c(x) as (select 1 union all select x + 1 from c limit 250)
    select x, 'name ' || x, 'city ' || x % 20, 'a note that is some forty characters long ' || x from c;
  insert into orders with recursive c(x) as (select 1 union all select x + 1 from c limit 800)
    select x, 1 + x % 250, x * 7 % 1000, case x % 3 when 0 then 'open' when 1 then 'paid' else 'shipped' end, '2026-01-' || (10 + x % 18) from c;
  insert into items with recursive c(x) as (select 1 union all select x + 1 from c limit 1800)
    select x, 1 + x % 800, 'sku ' || x % 100, x % 9 from c;
  create trigger noted after update on orders begin insert into changes(what, at) values (new.status, new.day); end;
  create view sold as select o.id, c.city, o.cents from orders o join customers c on c.id = o.customer_id`;

test.each([
  "select * from customers where id = 5",
  "select c.city, count(*), sum(o.cents) from orders o join customers c on c.id = o.customer_id group by c.city order by 2 desc",
  "select c.name, r.label, sum(o.cents) from customers c join orders o on o.customer_id = c.id join regions r on r.city = c.city group by 1, 2 order by 3 desc limit 10",
  "select * from orders where customer_id in (select id from customers where city = 'city 3') limit 100",
  "select name from customers c where not exists (select 1 from orders o where o.customer_id = c.id and o.status = 'open')",
  "select name, (select max(cents) from orders o where o.customer_id = c.id) from customers c order by 2 desc limit 3",
  "select upper(name), substr(note, 1, 10), replace(note, 'note', 'x'), printf('%05d %s', id, city) from customers where note like '%some%'",
  "select city, group_concat(name, ', ') from customers group by city",
  "select row_number() over (order by cents desc) as r, id from orders limit 5",
  "select status, rank() over (partition by status order by cents) from orders limit 5",
  "with t as (select customer_id, sum(cents) as s from orders group by 1), u as (select avg(s) as a from t) select count(*) from t, u where t.s > u.a",
  "select city, sum(cents) from sold group by city having sum(cents) > 10",
  "select distinct sku from items order by sku",
  "select strftime('%m', day) as m, count(distinct customer_id) from orders group by m",
  "select i.id from items i left join orders o on o.id = i.order_id where o.id is null",
  "select id, cents from orders where status = 'open' union all select id, cents from orders where status = 'paid' order by cents limit 20",
  "update orders set status = 'shipped' where status = 'paid'",
  "delete from items where order_id in (select id from orders where cents < 100)",
  "insert into items(order_id, sku, n) select id, 'new', 1 from orders",
  "insert into customers(id, name) values (1, 'Ada') on conflict(id) do update set name = excluded.name returning name",
  "create index days on orders(day)",
  "create table big as select o.*, c.name from orders o join customers c on c.id = o.customer_id",
  "alter table orders add column extra text default 'x'",
  "alter table orders rename column day to date",
  "select count(*) from orders a join orders b on a.customer_id = b.customer_id and a.id < b.id",
  "select count(*) from items a join items b on a.order_id = b.order_id",
  "drop view sold; alter table orders drop column cents; drop table items",
])("a statement that environments typically run is accepted: %s", (query) => {
  const exec = opened();
  exec(SHOP);
  expect(() => exec(query)).not.toThrow();
});

test("fifteen hundred rows can be inserted with json_each in one call", () => {
  const exec = opened();
  exec("create table t(id integer primary key, name text, tags text)");
  const rows = Array.from({ length: 1500 }, (_, id) => ({
    id,
    name: `name ${id}`,
    tags: [id % 7],
  }));
  const query = "insert into t select value ->> 'id', value ->> 'name', value -> 'tags' from json_each(?)";
  exec(query, [JSON.stringify(rows)]);
  const asked = "select count(*) as n from t, json_each(t.tags) tag where tag.value = 3";
  expect(exec(asked)).toEqual([{ n: 214 }]);
});

const THOUSAND = `
  create table t(id integer primary key, x); create table "two words"(x); create table 🙂(x);
  insert into t(x) with recursive c(x) as (select 1 union all select x + 1 from c limit 1000) select x from c;
  insert into "two words" select x from t; insert into 🙂 select x from t; create view v as select x from t`;

test.each([
  `select count(*) from main.t a, "t" b, [T] c, \`t\``,
  "select count(*) from 't' a, main.'t' b, ((t) c), (t) join t",
  `select count(*) from 🙂 a, "🙂" b, 🙂, [🙂] d`,
  `select count(*) from [two words] a, "two words" b, \`two words\` c, 'two words' d`,
  "select count(*) from t/* t */a--\n, v b, main . v c",
  "with a as (select * from t), b as materialized (select a.x from a, a c) select count(*) from b, b d",
  "select 1 where 1 in (select a.x from t a, t b, t c)",
  "values ((select count(*) from t, t a, t b))",
  "update t set x = (select count(*) from t a, t b)",
  "insert into t(x) select 1 from t a returning (select count(*) from t b, t c)",
  "with t as (select 1 as id) select count(*) from t, main.t a, main.t b, main.t c",
  "with c as (select 1 as id from t) select count(*) from t join c on t.id = c.id join t a on a.id = c.id join t b on b.id = c.id",
])("a table counts wherever and however it is named: %s", (query) => {
  const exec = opened();
  exec(THOUSAND);
  expect(() => exec(query)).toThrow(/too much work/);
});

test("a sort costs less if a key selects one row", () => {
  const exec = opened();
  exec(THOUSAND);
  const sorted = (on: string) =>
    `select a.x, b.x, count(*) from t a join t b on ${on} group by 1, 2 order by 1, 2, 3 limit 3`;
  expect(exec(sorted("b.id = a.x"))).toHaveLength(3);
  expect(exec(sorted("a.id = b.x"))).toHaveLength(3);
  for (const on of ["b.x = a.x", "b.id = a.x or 1", "a.id = a.id", "b.id = b.x"]) {
    expect(() => exec(`${sorted(on)}; ${sorted(on)}`), on).toThrow(/too much work/);
  }
});

test("a trigger counts for each written row, also if a key selects the row", () => {
  const exec = opened();
  exec(THOUSAND);
  exec("delete from 🙂 where x > 300");
  for (const event of ["delete", "insert"]) {
    exec(`create trigger ${event}d after ${event} on t begin select count(*) from 🙂 a, "two words" b; end`);
  }
  const insert = "insert into t(x) select x from t a";
  for (const query of [
    "delete from t where id = 5",
    "delete from t where t.id = 6 and x = 6",
    `${insert} where a.id = 7`,
  ]) {
    expect(() => exec(query), query).not.toThrow();
  }
  const other = `${insert}, (select 5 as id) b where b.id = 5`;
  for (const query of ["delete from t where x = 5", "delete from t where id = 5 or x", other]) {
    expect(() => exec(query), query).toThrow(/too much work/);
  }
});
