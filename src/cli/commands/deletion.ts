/** `rollcall deletion list | show`: jobs that take a run, a project or an organisation away for good, and their receipts. */
import type { DeletionView } from "../../contract/deletion.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { namedCounts, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";

const HEADER = ["deletion", "of", "state", "gone so far", "begun"];

const LIST = command({
  name: "deletion list",
  reads: true,
  says: "what is being deleted, and receipts of the last 90 days",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.deletions({ limit: 100 }, { signal }));
      const none = "Nothing was deleted.";
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const SHOW = question({
  name: "deletion show",
  takes: "<deletion>",
  reads: true,
  says: "how far a deletion is, or its receipt",
  what: "a deletion, by its id",
  ask: (client, id, options) => client.getDeletion(id, options),
  text: deletionText,
});

function rowOf({ id, target_id, state, counts, created_at }: DeletionView): string[] {
  return [id, target_id, state, namedCounts(counts), timeText(created_at)];
}

function deletionText({ id, kind, target_id, state, counts, ...times }: DeletionView): string {
  return safeDetails({
    deletion: id,
    of: `the ${kind} ${target_id}`,
    state,
    "gone so far": namedCounts(counts),
    begun: timeText(times.created_at),
    done: times.finished_at === null ? null : timeText(times.finished_at),
    "copies until": times.recoverable_until === null ? null : timeText(times.recoverable_until),
  });
}

/** What a command that begins a deletion says. */
export function begunText({ id, kind, target_id }: DeletionView): string {
  return `The ${kind} ${target_id} is being deleted: ${id}`;
}

export const DELETION_COMMANDS = [LIST, SHOW] as const;
