/**
 * Exports an organisation as files: everything that its keys can read, project by project.
 *
 * Invariants: slow work is done once. A run that has not changed since an earlier attempt keeps its files, and its
 * rollouts continue after the last complete line; a dataset never changes. Lists are short and are read again. The
 * files of a run in progress hold its current state, and the manifest names the run.
 */
import type { ProjectView, WhoAmI } from "../../accounts/wire.ts";
import { permits } from "../../contract/identity.ts";
import type { DatasetView } from "../../contract/uploaded-dataset.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { usageError } from "../exit.ts";
import type { Session } from "../on-platform.ts";
import { countText } from "../terminal/format.ts";
import type { ExportCounts, Exporting } from "./exporting.ts";
import { ExportFolder } from "./folder.ts";
import { exportRun } from "./run.ts";

const PAGE = 100;

const NOTHING: ExportCounts = {
  ...{ people: 0, keys: 0, audit_entries: 0, projects: 0, endpoints: 0, secrets: 0 },
  ...{ datasets: 0, runs: 0, rollouts: 0 },
};

export async function exportOrganization({ client, inProject, url, signal, term }: Session, directory: string) {
  const who = await client.whoAmI({ signal });
  if (!permits(who.scopes, "admin")) throw usageError("an export needs a key with the scope admin");
  const { organization, project } = who;
  const folder = new ExportFolder(directory, { organization: organization.id, project: project?.id ?? null });
  const show = (what: string) => term.redraw(() => [what]);
  const begun = Math.floor(Date.now() / 1000);
  const shared: Exporting = { folder, signal, counts: { ...NOTHING }, unfinished: [], show };
  if (project === null) await exportAccount(client, shared);
  else term.log(`The key is for the project ${project.name}: only that is exported.`);
  for await (const one of projectsOf(client, who, signal)) {
    await exportProject(inProject(one.id), one, shared);
    term.log(`${one.name} is written: ${countText(shared.counts.runs)} runs so far`);
  }
  show("the manifest");
  const manifest = await folder.finish({
    ...{ object: "organization_export", platform: url, organization, project },
    ...{ began_at: begun, finished_at: Math.floor(Date.now() / 1000) },
    ...{ counts: shared.counts, unfinished_runs: shared.unfinished },
  });
  show("");
  term.redraw(() => []);
  return manifest;
}

async function exportAccount(client: RollcallClient, { folder, signal, counts, show }: Exporting): Promise<void> {
  show("the organisation");
  folder.writeJson("organization.json", await client.organization.get({ signal }));
  const people = await all(client.people.list({ limit: PAGE }, { signal }));
  const keys = await all(client.keys.list({ limit: PAGE }, { signal }));
  folder.writeJson("people.json", people);
  folder.writeJson("keys.json", keys);
  folder.writeJson("invitations.json", await all(client.invitations.list({ limit: PAGE }, { signal })));
  folder.writeJson("deletions.json", await all(client.deletions.list({ limit: PAGE }, { signal })));
  counts.people = people.length;
  counts.keys = keys.length;
  show("the audit log");
  counts.audit_entries = await folder.writeLines("audit-log.jsonl", client.auditLog.list({ limit: PAGE }, { signal }));
}

async function* projectsOf(client: RollcallClient, { project }: WhoAmI, signal: AbortSignal) {
  if (project === null) yield* client.projects.list({ limit: PAGE, order: "asc" }, { signal });
  else yield await client.projects.get(project.id, { signal });
}

/** `client` works in the project. */
async function exportProject(client: RollcallClient, project: ProjectView, shared: Exporting): Promise<void> {
  const { folder, signal, counts, show } = shared;
  const place = `projects/${project.name}`;
  folder.writeJson(`${place}/project.json`, project);
  const endpoints = await all(client.endpoints.list({ limit: PAGE }, { signal }));
  const secrets = await all(client.secrets.list({ limit: PAGE }, { signal }));
  folder.writeJson(`${place}/endpoints.json`, endpoints);
  folder.writeJson(`${place}/secrets.json`, secrets);
  for await (const dataset of client.datasets.list({ limit: PAGE, order: "asc" }, { signal })) {
    show(`${project.name}: dataset ${dataset.name ?? dataset.id}`);
    await exportDataset(client, dataset, `${place}/datasets/${dataset.id}`, shared);
  }
  for await (const { id } of client.runs.list({ limit: PAGE, order: "asc" }, { signal })) {
    await exportRun(client, id, `${place}/runs/${id}`, shared);
    counts.runs += 1;
  }
  counts.endpoints += endpoints.length;
  counts.secrets += secrets.length;
  counts.projects += 1;
}

/** Writes the rows first, then the dataset's description. */
async function exportDataset(
  client: RollcallClient,
  dataset: DatasetView,
  path: string,
  { folder, signal, counts }: Exporting,
): Promise<void> {
  counts.datasets += 1;
  const rows = folder.keeps(`${path}.jsonl`);
  if (!rows) await folder.writeLines(`${path}.jsonl`, rowsOf(client, dataset.id, signal));
  folder.writeJson(`${path}.json`, dataset);
}

/** As they were uploaded. */
async function* rowsOf(client: RollcallClient, id: string, signal: AbortSignal): AsyncGenerator<object> {
  for await (const { row } of client.datasets.rows(id, {}, { signal })) yield row;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
