/**
 * Generated tasks: a small shop, a change to be made, and the state after it.
 *
 * Invariants. `check_sql` reads every row, so an unwanted change is as wrong as a missing one. `answer` is its result
 * after the task was done, as `JSON.stringify` writes it.
 */
export interface SqlTask {
  readonly question: string;
  readonly answer: string;
  readonly seed_sql: string;
  readonly check_sql: string;
  /** Statements that solve the task. */
  readonly gold_sql: readonly string[];
}

interface Customer {
  readonly id: number;
  readonly name: string;
  readonly city: string;
}
interface Order {
  readonly id: number;
  readonly customer_id: number;
  /** In whole cents. */
  readonly cents: number;
  readonly status: string;
}
interface Shop {
  readonly customers: readonly Customer[];
  readonly orders: readonly Order[];
}

const NAMES = ["Ada", "Bo", "Chidi", "Dina", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jun"];
const CITIES = ["Oslo", "Lima", "Pune", "Quito"];
const STATUSES = ["open", "paid", "shipped"];

const SCHEMA = `create table customers(id integer primary key, name text not null, city text not null);
create table orders(id integer primary key, customer_id integer not null references customers(id), cents integer not null, status text not null);`;

const CHECK = `select 'customer' as kind, id, name as a, city as b, null as c from customers
union all select 'order', id, customer_id, cents, status from orders order by kind, id`;

type Random = () => number;

export function shopTask(random: Random): SqlTask {
  const shop = drawShop(random);
  const { wish, gold, after } = pick(random, WISHES)(shop, random);
  const answer = JSON.stringify(rowsOf(after));
  // A task that is fulfilled from the start is drawn again.
  if (answer === JSON.stringify(rowsOf(shop))) return shopTask(random);
  return {
    question: `You have a SQLite database of a shop. ${SCHEMA}\nAmounts are in cents. ${wish} Change nothing else. Say "done" when it is so.`,
    answer,
    seed_sql: seedOf(shop),
    check_sql: CHECK,
    gold_sql: gold,
  };
}

type Wish = (
  shop: Shop,
  random: Random,
) => { readonly wish: string; readonly gold: readonly string[]; readonly after: Shop };

const WISHES: readonly Wish[] = [
  (shop, random) => {
    const city = pick(random, shop.customers).city;
    const those = idsIn(shop, city);
    return {
      wish: `Set the status of every open order of customers in ${city} to 'shipped'.`,
      gold: [
        `update orders set status = 'shipped' where status = 'open' and customer_id in (select id from customers where city = '${city}')`,
      ],
      after: withOrders(shop, (order) =>
        order.status === "open" && those.has(order.customer_id) ? { ...order, status: "shipped" } : order,
      ),
    };
  },
  (shop, random) => {
    const limit = pick(random, shop.orders).cents;
    const orders = shop.orders.filter(({ cents, status }) => status === "paid" || cents >= limit);
    return {
      wish: `Delete every order of less than ${limit} cents that is not paid.`,
      gold: [`delete from orders where cents < ${limit} and status <> 'paid'`],
      after: { ...shop, orders },
    };
  },
  (shop, random) => {
    const { name } = pick(random, shop.customers);
    const percent = 10 * between(random, 1, 5);
    const id = shop.customers.find((customer) => customer.name === name)?.id;
    return {
      wish: `Raise the amount of each order of ${name} by ${percent} percent.`,
      gold: [
        `update orders set cents = cents * ${100 + percent} / 100 where customer_id = (select id from customers where name = '${name}')`,
      ],
      after: withOrders(shop, (order) =>
        order.customer_id === id ? { ...order, cents: (order.cents * (100 + percent)) / 100 } : order,
      ),
    };
  },
  (shop, random) => {
    const [name, city, cents] = ["Zoe", pick(random, CITIES), 100 * between(random, 1, 99)];
    const customer = { id: shop.customers.length + 1, name, city };
    const id = shop.orders.length + 1;
    const order = { id, customer_id: customer.id, cents, status: "open" };
    return {
      wish: `Add a customer named ${name} from ${city}, with the next free id, and one open order of theirs of ${cents} cents, likewise.`,
      gold: [
        `insert into customers(name, city) values ('${name}', '${city}')`,
        `insert into orders(customer_id, cents, status) select max(id), ${cents}, 'open' from customers`,
      ],
      after: { customers: [...shop.customers, customer], orders: [...shop.orders, order] },
    };
  },
  (shop) => {
    const busy = new Set(shop.orders.map((order) => order.customer_id));
    const customers = shop.customers.filter(({ id }) => busy.has(id));
    return {
      wish: "Delete every customer without an order.",
      gold: ["delete from customers where id not in (select customer_id from orders)"],
      after: { ...shop, customers },
    };
  },
];

function drawShop(random: Random): Shop {
  const customers = NAMES.slice(0, between(random, 5, NAMES.length)).map((name, index) => ({
    id: index + 1,
    name,
    city: pick(random, CITIES),
  }));
  const orders = Array.from({ length: between(random, 8, 25) }, (_, index) => ({
    id: index + 1,
    customer_id: pick(random, customers).id,
    cents: 100 * between(random, 1, 99),
    status: pick(random, STATUSES),
  }));
  return { customers, orders };
}

function seedOf({ customers, orders }: Shop): string {
  const people = customers.map(({ id, name, city }) => `(${id}, '${name}', '${city}')`);
  const sold = orders.map(({ id, customer_id, cents, status }) => `(${id}, ${customer_id}, ${cents}, '${status}')`);
  return `${SCHEMA}
insert into customers values ${people.join(", ")};
insert into orders values ${sold.join(", ")}`;
}

/** The rows as `check_sql` returns them. */
function rowsOf({ customers, orders }: Shop) {
  return [
    ...customers.map(({ id, name, city }) => ({ kind: "customer", id, a: name, b: city, c: null })),
    ...orders.map(({ id, customer_id, cents, status }) => ({
      kind: "order",
      id,
      a: customer_id,
      b: cents,
      c: status,
    })),
  ];
}

function idsIn({ customers }: Shop, city: string): ReadonlySet<number> {
  return new Set(customers.filter((customer) => customer.city === city).map(({ id }) => id));
}

function withOrders(shop: Shop, change: (order: Order) => Order): Shop {
  return { ...shop, orders: shop.orders.map(change) };
}

function pick<T>(random: Random, items: readonly T[]): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new RangeError("nothing to pick from");
  return item;
}

function between(random: Random, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1));
}
