/** `rollcall view`: opens the web page of a platform, signed in. */
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, unreachable, usageError } from "../exit.ts";
import { aborted, firstOf } from "../interrupt.ts";
import { platformAsked, withConnection } from "../on-platform.ts";
import { openBrowser, openerOf, pageLink, pathOf } from "../page-link.ts";
import { timeText } from "../terminal/format.ts";
import { printJson, terminal } from "../terminal/terminal.ts";

export const VIEW = command({
  name: "view",
  takes: "[run|rollout]",
  reads: true,
  help: "open the web page: its home, or one run or rollout",
  more: `It prints a link that signs a browser in, once, within five minutes, and opens it if there is a browser. If no
platform uses the state directory, it starts a read-only one, which runs until ctrl-C.`,
  flags: { "no-browser": { help: "only print the link" }, ...PLATFORM_FLAGS },
  async run(line) {
    const [id, ...more] = line.positionals;
    if (more.length > 0) throw usageError("at most one run or rollout is allowed", "id");
    const path = pathOf(id);
    const [json, browser] = [line.on("json"), !line.on("no-browser")];
    const term = terminal(json);
    const asked = { ...platformAsked(line), ephemeral: false, reads: true };
    return await withConnection(asked, term.log, async (connection, ends) => {
      const { client, kind, lost } = connection;
      const signal = firstOf(ends);
      if (id?.startsWith("run_")) await client.runs.get(id, { signal });
      const link = await pageLink(client, path, { signal });
      term.print(link.url);
      if (json) printJson({ object: "page_link", ...link });
      const isTTY = process.stdout.isTTY === true && !json;
      const opener = browser ? await openerOf({ env: process.env, platform: process.platform, isTTY }) : null;
      const opened = opener !== null && (await openBrowser(opener, link.url));
      const until = `The link signs in once, until ${timeText(link.expires_at)}.`;
      term.log(opened ? "Opened in your browser." : until);
      if (kind !== "embedded") return EXIT.good;
      term.log("Ctrl-C stops the platform.");
      const reason = await Promise.race([lost, aborted(signal)]);
      if (reason instanceof Error) throw unreachable("the platform has stopped", reason);
      return EXIT.good;
    });
  },
});
