/** What a key or a person is signed in to the web page with ends with them. */
import { eq } from "drizzle-orm";
import type { Condition, InOrganization, Write } from "../../kernel/db/scoped.ts";
import { signInCodes, type WebSessionRow, webSessions } from "../tables.ts";

/** Of a key, or of a person; the other is null. */
export type Whose = Pick<WebSessionRow, "key_id" | "person_id">;

/** The statements that delete sessions and codes of a key or a person of the organisation, where the condition holds. */
export function endSignIns(owned: InOrganization, whose: Whose, condition: Condition): Write<unknown>[] {
  return [webSessions, signInCodes].map((table) => owned.delete(table, isTheirs(table, whose), condition));
}

export function isTheirs(table: typeof webSessions | typeof signInCodes, { key_id, person_id }: Whose): Condition {
  return key_id === null ? eq(table.person_id, person_id ?? "") : eq(table.key_id, key_id);
}
