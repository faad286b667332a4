/** Statements that are not offered, by their first words. */
import { EnvError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { exceedsUtf8 } from "../utf8.ts";
import type { Statement } from "./statements.ts";

/** Statements about the connection, which is not the environment's. A call is a transaction by itself. */
const NOT_OFFERED =
  /^(attach|detach|pragma|vacuum|begin|commit|end|rollback|savepoint|release|create temp|create temporary)$/i;

/** A word as SQLite reads it may stand in quotes only where a name does. */
export function requireOffered({ tokens }: Statement): void {
  const asks = /^explain$/i.test(tokens[0] ?? "");
  const plan = asks && /^query$/i.test(tokens[1] ?? "");
  const [first = "", second = "", third = ""] = tokens.slice(plan ? 3 : Number(asks));
  for (const words of [first, `${first} ${second}`]) {
    if (NOT_OFFERED.test(words)) throw new EnvError(`${words} is not offered here`);
  }
  if (/^create virtual table$/i.test(`${first} ${second} ${third}`)) {
    throw new EnvError(
      "virtual tables are not offered here: their work cannot be counted (json_each and json_tree can be asked)",
    );
  }
  if (/^alter table$/i.test(`${first} ${second}`) && adds(tokens)) {
    throw new EnvError("a column with a check, or a generated one, cannot be added here: create the table with it");
  }
}

/** SQLite then checks the whole table, in a statement of its own that nobody sees. */
function adds(tokens: readonly string[]): boolean {
  return tokens.some((token) => /^(check|as)$/i.test(token));
}

export function requireShort(query: string, params: readonly unknown[]): void {
  if (query.includes("\0")) throw new EnvError("the query has a character of code 0");
  if (exceedsUtf8(query, LIMITS.sqlQueryBytes)) {
    throw new EnvError(`the query is over ${LIMITS.sqlQueryBytes} bytes: pass data as parameters`);
  }
  if (exceedsUtf8(JSON.stringify(params), LIMITS.sqlParameterBytes)) {
    throw new EnvError(`the parameters are over ${LIMITS.sqlParameterBytes} bytes as JSON`);
  }
}
