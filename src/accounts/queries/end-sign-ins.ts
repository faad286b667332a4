/** Ends the sign-ins to the web page of a key or a person that ends. */
import { eq } from "drizzle-orm";
import type { Condition, InOrganization, Write } from "../../kernel/db/scoped.ts";
import { signInCodes, type WebSessionRow, webSessions } from "../tables.ts";

/** A key or a person; the other is null. */
export type Whose = Pick<WebSessionRow, "key_id" | "person_id">;

/** Statements that delete the sessions and codes of a key or a person of the organisation, if the condition holds. */
export function endSignIns(owned: InOrganization, whose: Whose, condition: Condition): Write<unknown>[] {
  return [webSessions, signInCodes].map((table) => owned.delete(table, isTheirs(table, whose), condition));
}

export function isTheirs(table: typeof webSessions | typeof signInCodes, { key_id, person_id }: Whose): Condition {
  return key_id === null ? eq(table.person_id, person_id ?? "") : eq(table.key_id, key_id);
}
