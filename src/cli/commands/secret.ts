/** `rollcall secret set | list | delete`. A value is read from stdin or a variable, and nobody reads it back. */
import { text } from "node:stream/consumers";
import type { SecretView } from "../../contract/endpoint.ts";
import { ApiRequestError } from "../../sdk/client.ts";
import { variableNamedBy } from "../argument-values.ts";
import { readCommandLine } from "../command-line.ts";
import { SECRET_DELETE, SECRET_LIST, SECRET_SET } from "../commands.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { gather, onPlatform, type Session } from "../on-platform.ts";
import { timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";

const HEADER = ["secret", "created", "changed", "id"];

export function secretSetCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(SECRET_SET, argv);
  const name = line.one("the secret");
  const fromVariable = variableNamedBy("from-env", line.text("from-env"));
  return onPlatform(line, async (session) => {
    const value = fromVariable ?? (await valueFromStdin(session));
    const secret = await createOrReplace(name, value, session);
    session.answer(secret, () => `${secret.name} is set`);
    return EXIT.good;
  });
}

export function secretListCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(SECRET_LIST, argv);
  line.none();
  return onPlatform(line, async ({ client, signal, term: { room }, answer }) => {
    const page = await gather(client.secrets({}, { signal }));
    const none = "No secrets. Keep one with: rollcall secret set NAME < file";
    answer(page, () => listText(page.data, { header: HEADER, rowOf, none, room }));
    return EXIT.good;
  });
}

export function secretDeleteCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(SECRET_DELETE, argv);
  const name = line.one("the secret");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const deleted = await client.deleteSecret(name, { signal });
    answer(deleted, () => `Deleted ${name}`);
    return EXIT.good;
  });
}

/** The line break `echo` leaves at the end is no part of it. */
async function valueFromStdin({ term }: Session): Promise<string> {
  if (process.stdin.isTTY) term.say("The value, then ctrl-D:");
  const value = (await text(process.stdin)).replace(/\r?\n$/, "");
  if (value !== "") return value;
  throw usageError("stdin holds no value; give it there, or name a variable with --from-env");
}

async function createOrReplace(name: string, value: string, { client, signal }: Session): Promise<SecretView> {
  try {
    return await client.createSecret({ name, value }, { signal });
  } catch (error) {
    if (!(error instanceof ApiRequestError) || error.code !== "conflict") throw error;
    return client.updateSecret(name, { value }, { signal });
  }
}

function rowOf({ name, created_at, updated_at, id }: SecretView): string[] {
  return [name, timeText(created_at), timeText(updated_at), id];
}
