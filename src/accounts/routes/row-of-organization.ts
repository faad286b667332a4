/** The row of the caller's organisation that the path names. */

import type { Caller } from "../../contract/identity.ts";
import { type Database, databaseOf } from "../../kernel/db/database.ts";
import { Refusal } from "../../kernel/http/errors.ts";
import { type ApiContext, pathParam } from "../../kernel/http/operation.ts";

export async function rowOfOrganization<Row>(
  context: ApiContext,
  what: string,
  find: (database: Database, caller: Caller, id: string) => Promise<Row | null>,
): Promise<Row> {
  const id = pathParam(context, "id");
  const row = await find(databaseOf(context.env), context.var.caller, id);
  if (row !== null) return row;
  throw new Refusal({ code: "not_found", message: `no ${what} ${id}`, param: "id" });
}
