/**
 * `rollcall secret set | list | delete`. A value is read from stdin or an environment variable, and can never be read
 * back.
 */

import { text } from "node:stream/consumers";
import type { SecretView } from "../../contract/endpoint.ts";
import { COMMAND } from "../../local/package-root.ts";
import { ApiRequestError } from "../../sdk/request-error.ts";
import { variableNamedBy } from "../argument-values.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question, type Session } from "../on-platform.ts";
import { timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";

const HEADER = ["secret", "created", "changed", "id"];

const SET = command({
  name: "secret set",
  takes: "<name>",
  help: "store a value that environments may use; a new value replaces the old one",
  more: "The value is read from stdin or from a variable, never from the command line, which others can see.",
  flags: {
    "from-env": { value: "VAR", help: "environment variable with the value" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const name = line.one("the secret");
    const fromVariable = variableNamedBy("from-env", line.text("from-env"));
    return onPlatform(line, async (session) => {
      const value = fromVariable ?? (await valueFromStdin(session));
      const secret = await createOrReplace(name, value, session);
      return { json: secret, text: () => `${secret.name} is set` };
    });
  },
});

/** The line break that `echo` adds is not part of the value. */
async function valueFromStdin({ term }: Session): Promise<string> {
  if (process.stdin.isTTY) term.log("Enter the value, then ctrl-D:");
  const value = (await text(process.stdin)).replace(/\r?\n$/, "");
  if (value !== "") return value;
  throw usageError("stdin is empty: pipe the value in, or use --from-env");
}

async function createOrReplace(name: string, value: string, { client, signal }: Session): Promise<SecretView> {
  try {
    return await client.secrets.create({ name, value }, { signal });
  } catch (error) {
    if (!(error instanceof ApiRequestError) || error.code !== "conflict") throw error;
    return client.secrets.update(name, { value }, { signal });
  }
}

const LIST = command({
  name: "secret list",
  reads: true,
  help: "list the names of the secrets; values cannot be read",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.secrets.list({}, { signal }));
      const none = `No secrets. Store one with: ${COMMAND} secret set NAME < file`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

function rowOf({ name, created_at, updated_at, id }: SecretView): string[] {
  return [name, timeText(created_at), timeText(updated_at), id];
}

const DELETE = question({
  name: "secret delete",
  takes: "<name>",
  help: "delete a secret",
  what: "the secret",
  ask: (client, name, options) => client.secrets.delete(name, options),
  text: (_deleted, _term, name) => `Deleted ${name}`,
});

export const SECRET_COMMANDS = [SET, LIST, DELETE] as const;
