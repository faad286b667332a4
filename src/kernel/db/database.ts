/** The database of a deployment. */
export interface Database {
  readonly main: D1Database;
}

export function databaseOf(env: Pick<Env, "DB">): Database {
  return { main: env.DB };
}
