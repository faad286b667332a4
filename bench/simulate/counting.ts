/**
 * An `env` that counts what is called through it: methods of objects, statements of D1, messages of queues, operations
 * of R2. And a count of the rows that objects write. Nothing else changes.
 */

/** By name: how often. Calls are named `caller > target`. */
export class Counts {
  readonly #counts = new Map<string, number>();

  add(name: string, count = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
  }

  all(): Record<string, number> {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}

type Method = (...args: unknown[]) => unknown;

/** The bindings of `env` by kind. All others stay as they are. */
const OBJECTS: Readonly<Record<string, string>> = {
  RUN: "run",
  ROLLOUT: "rollout",
  ENDPOINT: "endpoint",
  ACCOUNT: "account",
  PROJECT: "project",
  REQUESTS: "requests",
  AUDIT: "audit",
  FLEET: "fleet",
};
const QUEUES = /^(ROLLOUT_(GROUPS|SCORES|JUDGEMENTS)|RUN_SEGMENTS)/;

/** `caller`: what the calls are counted under. */
export function counting<Bindings extends object>(env: Bindings, caller: string, counts: Counts): Bindings {
  return new Proxy(env, {
    get(target, name) {
      const binding: unknown = Reflect.get(target, name);
      if (typeof name !== "string" || typeof binding !== "object" || binding === null) return binding;
      const object = OBJECTS[name];
      if (object !== undefined) return objects(binding, (method) => `${caller} > ${object}.${method}`, counts);
      if (/^DB(_\d+)?$/.test(name)) return database(binding, `${caller} > d1`, counts);
      if (name === "STORE") return bucket(binding, `${caller} > r2`, counts);
      return QUEUES.test(name) ? queue(binding, `${caller} > queue ${name.toLowerCase()}`, counts) : binding;
    },
  });
}

/** `replaced`: methods that do something else. All others act on the target itself. */
function wrapped(target: object, replaced: (name: string, method: Method) => Method | null): object {
  return new Proxy(target, {
    get(under, name) {
      const member: unknown = Reflect.get(under, name);
      if (typeof member !== "function" || typeof name !== "string") return member;
      const method: Method = (...args) => Reflect.apply(member, under, args);
      return replaced(name, method) ?? method;
    },
  });
}

/** A call counts once; if its first argument is a list, its items are counted, too. */
function objects(namespace: object, nameOf: (method: string) => string, counts: Counts): object {
  const stub = (under: object) =>
    wrapped(under, (name, method) => (...args) => {
      counts.add(nameOf(name));
      if (Array.isArray(args[0])) counts.add(`${nameOf(name)} items`, args[0].length);
      const [reply, from] = [method(...args), Date.now()];
      const replied = () => counts.add(`${nameOf(name)}: milliseconds`, Date.now() - from);
      void Promise.resolve(reply).then(replied, replied);
      return reply;
    });
  return wrapped(namespace, (name, method) =>
    name === "getByName" ? (...args) => stub(Object(method(...args))) : null,
  );
}

/** What runs a statement, whose time is counted, too; everything else prepares one. */
const RUNS = ["run", "all", "first", "raw"];

interface Prepared {
  readonly statement: unknown;
  readonly text: string;
}

/** `read` or `write`, and the first table that the statement names. */
function kindOf(statement: string): string {
  const [, table = "?"] = /\b(?:from|into|update)\s+"?(\w+)/i.exec(statement) ?? [];
  return `${/^\s*(select|with)\b/i.test(statement) ? "read" : "write"} ${table}`;
}

function database(under: object, caller: string, counts: Counts): object {
  const statements = new WeakMap<object, Prepared>();
  const count = (text: string) => counts.add(`${caller} ${kindOf(text)}`);
  const prepared = (statement: object, text: string): object => {
    const proxy = wrapped(statement, (name, method) => {
      if (name === "bind") return (...args) => prepared(Object(method(...args)), text);
      if (!RUNS.includes(name)) return null;
      return async (...args) => {
        count(text);
        const from = Date.now();
        try {
          return await method(...args);
        } finally {
          counts.add(`${caller}: milliseconds`, Date.now() - from);
        }
      };
    });
    statements.set(proxy, { statement, text });
    return proxy;
  };
  return wrapped(under, (name, method) => {
    if (name === "prepare") return (text) => prepared(Object(method(text)), String(text));
    if (name !== "batch") return null;
    return (batch) => {
      const known = (batch as readonly object[]).map((one) => statements.get(one) ?? { statement: one, text: "" });
      for (const { text } of known) count(text);
      return method(known.map(({ statement }) => statement));
    };
  });
}

/** The classes of its price: A changes or lists, B reads, deletions are free. */
const R2_CLASSES: Readonly<Record<string, string>> = {
  put: "class A",
  list: "class A",
  createMultipartUpload: "class A",
  get: "class B",
  head: "class B",
  delete: "deletion",
};

function bucket(under: object, caller: string, counts: Counts): object {
  return wrapped(under, (name, method) => (...args) => {
    counts.add(`${caller} ${R2_CLASSES[name] ?? name}`);
    return method(...args);
  });
}

function queue(under: object, name: string, counts: Counts): object {
  return wrapped(under, (method, call) => (...args) => {
    counts.add(`${name} ${method}`);
    const [batch] = args;
    counts.add(`${name} messages`, Array.isArray(batch) ? batch.length : 1);
    return call(...args);
  });
}

/** Counts the rows that this object's storage writes from now on. Key-value pairs and alarms are a row each. */
export function countRows(ctx: DurableObjectState, object: string, counts: Counts): DurableObjectState {
  const { storage } = ctx;
  const { sql, kv } = storage;
  let last: SqlStorageCursor<Record<string, SqlStorageValue>> | null = null;
  let written = 0;
  const take = () => {
    if (last !== null) counts.add(`rows ${object}`, last.rowsWritten - written);
    written = last?.rowsWritten ?? 0;
  };
  const exec = sql.exec.bind(sql);
  const put = kv.put.bind(kv);
  const setAlarm = storage.setAlarm.bind(storage);
  Object.defineProperty(sql, "exec", {
    value: (...args: Parameters<typeof exec>) => {
      take();
      last = exec(...args);
      written = 0;
      return last;
    },
  });
  Object.defineProperty(kv, "put", {
    value: (...args: Parameters<typeof put>) => {
      counts.add(`rows ${object}`);
      put(...args);
    },
  });
  Object.defineProperty(storage, "setAlarm", {
    value: (...args: Parameters<typeof setAlarm>) => {
      counts.add(`alarms set ${object}`);
      return setAlarm(...args);
    },
  });
  takers.add(take);
  return ctx;
}

const takers = new Set<() => void>();

/** Adds the rows of the last statement of each object. */
export function takeRows(): void {
  for (const take of takers) take();
}
