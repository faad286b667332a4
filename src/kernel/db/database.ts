/**
 * The database of a deployment: one or more D1 databases with the same tables, by number. `DB` is number 0; `DB_1`,
 * `DB_2`, … are the others.
 *
 * Invariants. All rows of an organisation are in one of them, which its id names, except rows of the tables in
 * `ofDeployment` (schema.ts). Those, and rows without an owner, are in number 0. So a statement never reads two of them.
 */
import { databaseNumberIn } from "../../core/ids.ts";

/** The bindings of the D1 databases. */
export type DatabaseBindings = Pick<Env, "DB" | `DB_${number}`>;

/** A token as its row is looked up. */
export interface HashedToken {
  /** SHA-256 of the whole token, in hex. */
  readonly hash: string;
  /** The number of the D1 database with its row. */
  readonly database: number;
}

export class Database {
  /** By number, at least one. */
  readonly all: readonly D1Database[];
  /** Number 0. */
  readonly main: D1Database;

  constructor(main: D1Database, others: readonly D1Database[]) {
    this.main = main;
    this.all = [main, ...others];
  }

  /** The one with the rows of an organisation. */
  of(orgId: string): D1Database {
    return this.at(databaseNumberIn(orgId));
  }

  /** False for the id of an organisation that this deployment cannot have. */
  has(orgId: string): boolean {
    return databaseNumberIn(orgId) < this.all.length;
  }

  /** Throws if the deployment does not have it. */
  at(number: number): D1Database {
    const one = this.all[number];
    if (one === undefined)
      throw new Error(`D1 database ${number} is not bound: this deployment has no ${nameOf(number)}`);
    return one;
  }

  /** Reads all of them, one after another. The answers are by number. */
  async each<T>(read: (d1: D1Database) => Promise<T>): Promise<T[]> {
    const answers: T[] = [];
    for (const d1 of this.all) answers.push(await read(d1));
    return answers;
  }
}

export function databaseOf(env: DatabaseBindings): Database {
  const others: D1Database[] = [];
  for (;;) {
    const next = env[`DB_${others.length + 1}`];
    if (next === undefined) return new Database(env.DB, others);
    others.push(next);
  }
}

/** The name of a D1 database's binding. */
function nameOf(number: number): string {
  return number === 0 ? "DB" : `DB_${number}`;
}
