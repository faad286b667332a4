/** `rollcall project …`: the projects of an organisation, to which its runs and datasets belong. */

import type { ProjectView } from "../../accounts/wire.ts";
import { COMMAND } from "../../local/package-root.ts";
import { defined } from "../argument-values.ts";
import { type CommandLine, command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { askAloud, isAsking, notConfirmed } from "../confirm.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";
import { deletionText } from "./deletion.ts";

const HEADER = ["project", "id", "keeps runs", "keeps datasets", "created"];

const RETENTION_FLAGS = {
  "runs-days": { value: "N|ever", help: "days to keep runs, or ever to keep them forever" },
  "datasets-days": { value: "N|ever", help: "days to keep datasets, or ever to keep them forever" },
  "verdicts-days": { value: "N|ever", help: "days to keep judgements, or ever to keep them forever" },
  "idempotency-keys-days": { value: "N", help: "days to keep idempotency keys" },
} as const satisfies Flags;

const LIST = command({
  name: "project list",
  reads: true,
  help: "list the projects that the key can access",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.projects.list({ limit: 100 }, { signal }));
      const none = `No projects. Create one with: ${COMMAND} project create NAME`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const CREATE = command({
  name: "project create",
  takes: "<name>",
  help: "create a project; needs a key of the whole organisation",
  flags: { ...RETENTION_FLAGS, ...PLATFORM_FLAGS },
  run(line) {
    const request = { name: line.one("the project"), retention: retentionOf(line) };
    return onPlatform(line, async ({ client, signal }) => {
      const project = await client.projects.create(request, { signal });
      return { json: project, text: () => projectText(project) };
    });
  },
});

const SHOW = question({
  name: "project show",
  takes: "<project>",
  reads: true,
  help: "show a project and its retention",
  what: "a project",
  ask: (client, name, options) => client.projects.get(name, options),
  text: projectText,
});

const UPDATE = command({
  name: "project update",
  takes: "<project>",
  help: "change only the given settings",
  flags: { name: { value: "NAME", help: "a new name" }, ...RETENTION_FLAGS, ...PLATFORM_FLAGS },
  run(line) {
    const project = line.one("a project");
    const retention = retentionOf(line);
    const kept = Object.keys(retention).length === 0 ? undefined : retention;
    const patch = defined({ name: line.text("name"), retention: kept });
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal }) => {
      const after = await client.projects.update(project, patch, { signal });
      return { json: after, text: () => projectText(after) };
    });
  },
});

const DELETE = command({
  name: "project delete",
  takes: "<project>",
  help: "delete a project with everything in it, for good",
  more: `Its keys are refused from then on. Needs a key of the whole organisation; the deletion continues by itself. On a
terminal it asks for the project again; without one it needs --confirm.`,
  flags: { confirm: { value: "PROJECT", help: "the project again, as confirmation" }, ...PLATFORM_FLAGS },
  run(line) {
    const project = line.one("a project");
    const said = line.text("confirm");
    if (said === undefined && !isAsking()) {
      throw usageError(`--confirm: is required: --confirm ${project}`, "confirm");
    }
    if (said !== undefined && said !== project) throw usageError(`--confirm: ${said} is not ${project}`, "confirm");
    return onPlatform(line, async ({ client, signal }) => {
      const question = `Delete ${project} with everything in it? It cannot be undone. Its name once more: `;
      if (said === undefined && (await askAloud(question, signal)) !== project) throw notConfirmed();
      const deletion = await client.projects.delete(project, { signal });
      return { json: deletion, text: () => deletionText(deletion) };
    });
  },
});

/** The retentions that were given; null keeps the data forever. */
function retentionOf(line: CommandLine<keyof typeof RETENTION_FLAGS>) {
  return defined({
    runs_days: daysOf(line, "runs-days"),
    datasets_days: daysOf(line, "datasets-days"),
    verdicts_days: daysOf(line, "verdicts-days"),
    idempotency_keys_days: line.count("idempotency-keys-days", 1),
  });
}

function daysOf(line: CommandLine<keyof typeof RETENTION_FLAGS>, flag: keyof typeof RETENTION_FLAGS) {
  return line.text(flag) === "ever" ? null : line.count(flag, 1);
}

function projectText({ name, id, retention, created_at }: ProjectView): string {
  return safeDetails({
    project: name,
    id,
    "keeps runs": daysText(retention.runs_days),
    "keeps datasets": daysText(retention.datasets_days),
    "keeps judgements": daysText(retention.verdicts_days),
    "keeps idempotency keys": daysText(retention.idempotency_keys_days),
    created: timeText(created_at),
  });
}

function rowOf({ name, id, retention, created_at }: ProjectView): string[] {
  return [name, id, daysText(retention.runs_days), daysText(retention.datasets_days), timeText(created_at)];
}

function daysText(days: number | null): string {
  if (days === null) return "forever";
  return days === 1 ? "1 day" : `${days} days`;
}

export const PROJECT_COMMANDS = [LIST, CREATE, SHOW, UPDATE, DELETE] as const;
