/** `rollcall run share | unshare`: links with which anyone can read the report of a run. */
import { COMMAND } from "../../local/package-root.ts";
import { defined } from "../argument-values.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { onPlatform, question } from "../on-platform.ts";
import { timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";

const DAY_S = 86_400;

const SHARE = command({
  name: "run share",
  takes: "<run>",
  help: "create a link that lets anybody read the run's report",
  more: "The link is printed once. It shows no prompts and completions; run unshare revokes it.",
  flags: {
    days: { value: "N", help: "days until it expires; default 7, at most 90" },
    list: { help: "list the links instead of creating one" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("a run");
    const days = line.count("days", 1);
    if (line.on("list")) {
      return onPlatform(line, async ({ client, signal, term: { room } }) => {
        const page = await client.reportLinks.list(id, { limit: 100 }, { signal });
        const header = ["link", "created by", "made", "ends"];
        const rowOf = (link: (typeof page.data)[number]) => {
          return [link.id, link.created_by, timeText(link.created_at), timeText(link.expires_at)];
        };
        return { json: page, text: () => listText(page.data, { header, rowOf, none: "No links.", room }) };
      });
    }
    const request = defined({ expires_in_s: days === undefined ? undefined : days * DAY_S });
    return onPlatform(line, async ({ client, signal }) => {
      const link = await client.reportLinks.create(id, request, { signal });
      const how = `${link.id}, until ${timeText(link.expires_at)}; revoke it with: ${COMMAND} run unshare ${link.id}`;
      return { json: link, text: () => `${link.url}\n${how}` };
    });
  },
});

const UNSHARE = question({
  name: "run unshare",
  takes: "<link>",
  help: "revoke a link to a report",
  what: "a link",
  ask: (client, id, options) => client.reportLinks.delete(id, options),
  text: ({ id }) => `${id} is revoked`,
});

export const RUN_SHARE_COMMANDS = [SHARE, UNSHARE] as const;
