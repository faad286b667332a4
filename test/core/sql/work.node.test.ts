/** On `node:sqlite`; test/runtime/rollout/rollout-sql.test.ts asks the same of the platform's. */
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
  /too much work|may never end|be (counted|added)|written out|more than one view|sets off too many|out of memory|too complex|too big|too many/;

test.each(HOSTILE)("what would compute for long is refused before it runs: $name", (hostile) => {
  const { setup = [], query, params, runs } = hostile;
  const exec = opened();
  const all = () => {
    for (const text of setup) exec(text);
    return exec(query, params);
  };
  if (runs === true) expect(all()).toHaveLength(1);
  else expect(all).toThrow(REFUSED);
});

/** A shop of some size, as environments have them. */
const SHOP = `
  create table customers(id integer primary key, name text, city text, note text);
  create table orders(id integer primary key, customer_id integer references customers(id), cents integer, status text, day text);
  create table items(id integer primary key, order_id integer references orders(id), sku text, n integer);
  create index item_orders on items(order_id);
  create table changes(id integer primary key, what text, at text);
  insert into customers with recursive c(x) as (select 1 union all select x + 1 from c limit 1000)
    select x, 'name ' || x, 'city ' || x % 20, 'a note that is some forty characters long ' || x from c;
  insert into orders with recursive c(x) as (select 1 union all select x + 1 from c limit 5000)
    select x, 1 + x % 1000, x * 7 % 1000, case x % 3 when 0 then 'open' when 1 then 'paid' else 'shipped' end, '2026-01-' || (10 + x % 18) from c;
  insert into items with recursive c(x) as (select 1 union all select x + 1 from c limit 15000)
    select x, 1 + x % 5000, 'sku ' || x % 100, x % 9 from c;
  create trigger noted after update on orders begin insert into changes(what, at) values (new.status, new.day); end;
  create view sold as select o.id, c.city, o.cents from orders o join customers c on c.id = o.customer_id`;

test.each([
  "select * from customers where id = 5",
  "select c.city, count(*), sum(o.cents) from orders o join customers c on c.id = o.customer_id group by c.city order by 2 desc",
  "select c.name, i.sku, sum(i.n) from customers c join orders o on o.customer_id = c.id join items i on i.order_id = o.id group by 1, 2 order by 3 desc limit 10",
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
])("what environments ask for is let through: %s", (query) => {
  const exec = opened();
  exec(SHOP);
  expect(() => exec(query)).not.toThrow();
});

test("rows come in by json_each, five thousand of them in one call", () => {
  const exec = opened();
  exec("create table t(id integer primary key, name text, tags text)");
  const rows = Array.from({ length: 5000 }, (_, id) => ({
    id,
    name: `name ${id}`,
    tags: [id % 7],
  }));
  const query = "insert into t select value ->> 'id', value ->> 'name', value -> 'tags' from json_each(?)";
  exec(query, [JSON.stringify(rows)]);
  const asked = "select count(*) as n from t, json_each(t.tags) tag where tag.value = 3";
  expect(exec(asked)).toEqual([{ n: 714 }]);
});
