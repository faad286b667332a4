/** Storage of an object that is killed at a write that a test chooses. */

/** An instance of the object, until it is killed: after that, nothing it does has any effect. */
export class Life {
  over = false;
  #writes: number | null;

  constructor(writes: number | null) {
    this.#writes = writes;
  }

  end(): never {
    this.over = true;
    throw new Error("killed");
  }

  go(): void {
    if (this.over) this.end();
  }

  write(): void {
    this.go();
    if (this.#writes === null) return;
    if (this.#writes === 0) this.end();
    this.#writes -= 1;
  }

  storage(real: DurableObjectStorage): DurableObjectStorage {
    const sql = new Proxy(real.sql, {
      get: (_, name) => {
        if (name !== "exec") return Reflect.get(real.sql, name);
        return (query: string, ...bindings: unknown[]) => {
          if (!/^\s*select/.test(query)) this.write();
          return real.sql.exec(query, ...bindings);
        };
      },
    });
    const kv = new Proxy(real.kv, {
      get: (_, name) => {
        const member: unknown = Reflect.get(real.kv, name);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          if (name === "put" || name === "delete") this.write();
          return Reflect.apply(member, real.kv, args);
        };
      },
    });
    const transactionSync = <T>(run: () => T): T => {
      this.go();
      return real.transactionSync(() => {
        const written = run();
        this.write();
        return written;
      });
    };
    return new Proxy(real, {
      get: (_, name) => {
        if (name === "sql") return sql;
        if (name === "kv") return kv;
        return name === "transactionSync" ? transactionSync : Reflect.get(real, name);
      },
    });
  }
}
