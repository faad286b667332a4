/** `rollcall run delete` and `rollcall deletion …`: permanent deletions and their receipts. */

import { setTimeout as sleep } from "node:timers/promises";
import type { DeletionView } from "../../contract/deletion.ts";
import { COMMAND } from "../../local/package-root.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { askAloud, isAsking, notConfirmed } from "../confirm.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question, type Session } from "../on-platform.ts";
import { bytesText, countText, timeText } from "../terminal/format.ts";
import { details, listText } from "../terminal/table.ts";

const LOOK_EVERY_MS = 1000;
/** Printed at once: a user who waits sees no progress until then. */
const GOES_ON =
  "It finishes about 15 minutes after the run has ended, and continues without this command while the platform runs";
const HEADER = ["deletion", "of", "state", "gone", "begun"];

const DELETE_RUN = command({
  name: "run delete",
  takes: "<run>",
  help: "delete a run and all it left",
  more: `Rollouts in flight are cancelled first. Files and rows are deleted about 15 minutes after the end of the run. On a
terminal it asks first; without one it needs --yes. If the command is interrupted, the deletion continues.`,
  flags: {
    yes: { short: "y", help: "do not ask for confirmation" },
    "no-wait": { help: "exit once the deletion has started" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("a run");
    const [sure, waits] = [line.on("yes"), !line.on("no-wait")];
    if (!(sure || isAsking())) throw usageError("--yes: is required without a terminal", "yes");
    let show = "list";
    const work = async (session: Session) => {
      if (!sure) await confirm(id, session);
      const begun = await session.client.runs.delete(id, { signal: session.signal });
      show = `show ${begun.id}${session.flags}`;
      if (begun.state !== "done") session.term.log(`${begun.id} has started. ${GOES_ON}: ${COMMAND} deletion ${show}`);
      const deletion = waits ? await follow(begun, session) : begun;
      return { json: deletion, text: () => deletionText(deletion) };
    };
    return onPlatform(line, work, () => `; a started deletion continues: ${COMMAND} deletion ${show}`);
  },
});

async function confirm(id: string, { signal }: Session): Promise<void> {
  const answer = await askAloud(`Delete ${id} and all it left? It cannot be undone. [y/N] `, signal);
  if (!/^y(es)?$/i.test(answer)) throw notConfirmed();
}

async function follow(begun: DeletionView, { client, signal, term }: Session): Promise<DeletionView> {
  let deletion = begun;
  while (deletion.state !== "done") {
    const shown = deletion;
    term.redraw(() => [`${shown.target_id}: ${shown.state}${goneText(shown) && `, ${goneText(shown)} gone`}`]);
    await sleep(LOOK_EVERY_MS, undefined, { signal });
    deletion = await client.deletions.get(begun.id, { signal });
  }
  term.redraw(() => []);
  return deletion;
}

/** "1 run, 3 objects, 12 files, 1.0 MiB, 2 rows". */
function goneText({ counts }: DeletionView): string {
  const { bytes, ...others } = counts;
  const named = Object.entries(others).map(([what, n]) => `${countText(n)} ${n === 1 ? what.replace(/s$/, "") : what}`);
  return [...named, ...(bytes === undefined ? [] : [bytesText(bytes)])].join(", ");
}

export function deletionText(deletion: DeletionView): string {
  const { id, kind, target_id, state, created_at, finished_at, recoverable_until } = deletion;
  return details({
    deletion: id,
    of: `${kind} ${target_id}`,
    state,
    gone: goneText(deletion) || null,
    begun: timeText(created_at),
    finished: finished_at === null ? null : timeText(finished_at),
    "copies until": recoverable_until === null ? null : timeText(recoverable_until),
  });
}

const SHOW = question({
  name: "deletion show",
  takes: "<deletion>",
  help: "show the progress or the receipt of a deletion",
  what: "a deletion",
  ask: (client, id, options) => client.deletions.get(id, options),
  text: deletionText,
});

const LIST = command({
  name: "deletion list",
  help: "list deletions, newest first; receipts are kept for 90 days",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.deletions.list({}, { signal }));
      const none = `No deletions. Delete a run with: ${COMMAND} run delete RUN`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

function rowOf(deletion: DeletionView): string[] {
  const { id, kind, target_id, state, created_at } = deletion;
  return [id, `${kind} ${target_id}`, state, goneText(deletion), timeText(created_at)];
}

export const DELETION_COMMANDS = [DELETE_RUN, SHOW, LIST] as const;
