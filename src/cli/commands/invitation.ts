/** `rollcall invitation …`: how people become members. Tokens are read from a terminal or stdin, never from argv. */

import type { InvitationView } from "../../accounts/wire.ts";
import { ROLES } from "../../contract/identity.ts";
import { COMMAND } from "../../local/package-root.ts";
import { RollcallClient } from "../../sdk/client.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, failedOn, usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { configFile, profileName, readProfiles } from "../profiles.ts";
import { shownSecret } from "../said-secret.ts";
import { timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { safeLine } from "../terminal/text.ts";
import { platformUrl } from "../which-platform.ts";
import { keepNewKey } from "./login.ts";

const HEADER = ["invitation", "for", "role", "state", "by"];

const CREATE = command({
  name: "invitation create",
  takes: "<e-mail>",
  help: "invite a person, and print the link for accepting, once",
  more: "No e-mail is sent: send the link yourself. Only the link goes to stdout.",
  flags: { role: { value: "ROLE", choices: ROLES, help: "their role" }, ...PLATFORM_FLAGS },
  run(line) {
    const email = line.one("an e-mail address");
    const role = ROLES.find((known) => known === line.text("role"));
    if (role === undefined) throw usageError(`--role: is required: ${ROLES.join(", ")}`, "role");
    return onPlatform(line, async ({ client, url, signal, term }) => {
      const made = await client.invitations.create({ email, role }, { signal });
      const { id, url: link, expires_at } = made;
      if (link === null) term.log(`${id} was created by an earlier attempt, and its link was lost: delete it.`);
      else {
        term.log(`Valid once, until ${timeText(expires_at)}, in a browser or with the link as the token:`);
        term.log(`${COMMAND} invitation accept --platform ${url}`);
      }
      return { json: made, ...(link !== null && { text: () => link }) };
    });
  },
});

const LIST = command({
  name: "invitation list",
  reads: true,
  help: "list invitations, including ended ones",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.invitations.list({ limit: 100 }, { signal }));
      const none = `No invitations. Create one with: ${COMMAND} invitation create EMAIL --role developer`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const DELETE = question({
  name: "invitation delete",
  takes: "<invitation>",
  help: "revoke an invitation",
  what: "the id of an invitation",
  ask: (client, id, options) => client.invitations.delete(id, options),
  text: ({ id }) => `Deleted ${id}`,
});

const ACCEPT = command({
  name: "invitation accept",
  help: "accept an invitation by its link or token, and log in",
  more: `The command asks for the token or the whole link without showing it; with --token-stdin it reads stdin. The new key is
saved as a profile, as by rollcall login. If the platform already knows you by the invited address, the key of --as
proves it, and you join as the same person.`,
  flags: {
    platform: { value: "URL", help: "URL of the platform; default ROLLCALL_URL" },
    profile: { value: "NAME", help: "profile for the new key; default ROLLCALL_PROFILE, else default" },
    as: { value: "PROFILE", help: "profile whose key identifies you; default the profile of this platform, if any" },
    name: { value: "TEXT", help: "your name" },
    "token-stdin": { help: "read the token from stdin" },
    json: PLATFORM_FLAGS.json,
  },
  async run(line) {
    line.none();
    const url = line.text("platform") ?? process.env["ROLLCALL_URL"];
    if (!url) throw usageError("--platform: is required: --platform URL", "platform");
    const [platform, profile] = [platformUrl(url), profileName(line.text("profile"), process.env)];
    const said = await shownSecret("token", "token-stdin", line.on("token-stdin"));
    const token = said.slice(said.lastIndexOf("#") + 1);
    const known = keyKnownTo(platform, line.text("as"), profile);
    const client = new RollcallClient({ baseUrl: platform, apiKey: known?.key ?? token });
    const request = { token, name: line.text("name") ?? null };
    const term = terminal(line.on("json"));
    if (known !== null) term.log(`Accepted with the key of ${known.of}`);
    await keepNewKey(profile, { platform, project: null }, async () => {
      const accepted = await client.invitations.accept(request).catch((thrown: unknown) => {
        throw failedOn({ url: platform, profile: null }, thrown);
      });
      const { organization, person } = accepted;
      const { key, ...view } = accepted.key;
      if (key === null) throw new Error("the platform returned no key");
      term.print(`${person.email} is ${person.role} of ${safeLine(organization.name)} (profile ${profile})`);
      if (line.on("json")) printJson({ organization, person, key: view, profile, platform });
      return key;
    });
    return EXIT.good;
  },
});

/**
 * The key that identifies who accepts; null for none. `asked` is the profile of --as, `kept` the profile for
 * the new key. A key is only ever sent to its own platform.
 */
function keyKnownTo(
  platform: string,
  asked: string | undefined,
  kept: string,
): { readonly key: string; readonly of: string } | null {
  const { ROLLCALL_URL: url, ROLLCALL_API_KEY: key } = process.env;
  if (asked === undefined && url && key && platformUrl(url) === platform) return { key, of: "ROLLCALL_API_KEY" };
  const profiles = Object.entries(readProfiles(configFile(process.env)));
  const here = profiles.filter(([, profile]) => platformUrl(profile.platform) === platform);
  const chosen = here.find(([name]) => name === (asked ?? kept)) ?? (here.length === 1 ? here[0] : undefined);
  if (asked !== undefined && chosen?.[0] !== asked) {
    const names = here.map(([name]) => name).join(", ") || "none";
    throw usageError(`--as: ${asked} is not a profile of ${platform}; its profiles: ${names}`, "as");
  }
  return chosen === undefined ? null : { key: chosen[1].key, of: `the profile ${chosen[0]}` };
}

function rowOf(invitation: InvitationView): string[] {
  const { id, email, role, invited_by } = invitation;
  return [id, email, role, stateOf(invitation), invited_by];
}

function stateOf({ accepted_at, expires_at }: InvitationView): string {
  if (accepted_at !== null) return `accepted ${timeText(accepted_at)}`;
  return `${expires_at * 1000 > Date.now() ? "open until" : "ended"} ${timeText(expires_at)}`;
}

export const INVITATION_COMMANDS = [CREATE, LIST, DELETE, ACCEPT] as const;
