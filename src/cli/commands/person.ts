/** `rollcall person list | role | remove`: the members of an organisation, by id or e-mail address. */

import type { PersonView } from "../../accounts/wire.ts";
import { ROLES } from "../../contract/identity.ts";
import { COMMAND } from "../../local/package-root.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, type Session } from "../on-platform.ts";
import { timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";

const HEADER = ["person", "name", "role", "since", "id"];

const LIST = command({
  name: "person list",
  reads: true,
  help: "list the people of the organisation, and their roles",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.people.list({ limit: 100 }, { signal }));
      const none = `This organisation has keys, but no people yet. Invite somebody with: ${COMMAND} invitation create EMAIL --role developer`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const ROLE = command({
  name: "person role",
  takes: "<person> <role>",
  help: `change the role of a person: ${ROLES.join(", ")}; their keys follow`,
  flags: PLATFORM_FLAGS,
  run(line) {
    const [person, given, ...more] = line.positionals;
    const role = ROLES.find((known) => known === given);
    if (person === undefined || role === undefined || more.length > 0) {
      throw usageError(`a person (id or e-mail address) and a role are required: ${ROLES.join(", ")}`);
    }
    return onPlatform(line, async (session) => {
      const after = await session.client.people.update(
        await idOf(person, session),
        { role },
        { signal: session.signal },
      );
      return { json: after, text: () => `${after.email} is ${after.role}` };
    });
  },
});

const REMOVE = command({
  name: "person remove",
  takes: "<person>",
  help: "end a membership, and revoke the person's keys",
  more: "Keys that the person created for programs are revoked too. The only owner cannot be removed.",
  flags: PLATFORM_FLAGS,
  run(line) {
    const person = line.one("a person, by id or e-mail address");
    return onPlatform(line, async (session) => {
      const removed = await session.client.people.delete(await idOf(person, session), { signal: session.signal });
      return { json: removed, text: () => `${person} is no longer a member` };
    });
  },
});

/** Returns an id as it is, or finds the id of the member with this e-mail address. */
async function idOf(person: string, { client, signal }: Session): Promise<string> {
  if (!person.includes("@")) return person;
  const wanted = person.toLowerCase();
  for await (const { id, email } of client.people.list({ limit: 100 }, { signal })) {
    if (email.toLowerCase() === wanted) return id;
  }
  throw usageError(`nobody in the organisation has the address ${person}`);
}

function rowOf({ email, name, role, created_at, id }: PersonView): string[] {
  return [email, name ?? "", role, timeText(created_at), id];
}

export const PERSON_COMMANDS = [LIST, ROLE, REMOVE] as const;
