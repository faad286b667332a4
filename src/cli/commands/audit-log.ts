/** `rollcall audit-log`: who changed what in the organisation. */
import type { AuditEntry } from "../../accounts/wire.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { gather, onPlatform } from "../on-platform.ts";
import { dollarsText, timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";

const HEADER = ["entry", "at", "who", "action", "target", "status"];
const USUAL = 20;
/** The most entries that a page of the API has. */
const PAGE = 100;

export const AUDIT_LOG = command({
  name: "audit-log",
  reads: true,
  help: "list who changed what in the organisation, newest first",
  more: "A status of – means that the change is in progress or was interrupted.",
  flags: {
    who: { value: "ID", help: "only changes by this key, this person or the trainer of this run" },
    action: { value: "NAME", help: "only this operation, such as cancelRun" },
    target: { value: "ID", help: "only changes to this object" },
    limit: { value: "N", help: "entries to show; default 20" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    line.none();
    const limit = line.count("limit", 1) ?? USUAL;
    const asked = { who: line.text("who"), action: line.text("action"), target: line.text("target") };
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      // Asks for one more than is shown, to find out whether there are more.
      const query = { ...asked, limit: Math.min(PAGE, limit + 1) };
      const page = await gather(client.auditLog.list(query, { signal }), limit);
      const more = page.has_more ? "\n\nThere are more: --limit N" : "";
      const none = "Nothing was changed.";
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) + more };
    });
  },
});

function rowOf({ id, at, who, action, target, made, status, released }: AuditEntry): string[] {
  const amount = released === undefined ? "" : `, ${dollarsText(released.micros)} released`;
  return [id, timeText(at), who, action, `${target ?? made ?? ""}${amount}`, status === null ? "–" : String(status)];
}
