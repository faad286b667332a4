/** Deletions in tests: the object that carries them out, its alarm fired by hand, and what is left afterwards. */
import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { DeletionView } from "../../src/contract/deletion.ts";
import { runFolder } from "../../src/kernel/kit/names.ts";
import { RolloutObject } from "../../src/kernel/rollout/object.ts";
import { ProjectObject } from "../../src/retention/object.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { type Inside, inside, type TestApi } from "./platform.ts";

/** Longer than any message or call of a run can be under way. */
export const LATER_MS = 20 * 60_000;

export function projectStub({ scope }: TestApi): DurableObjectStub {
  return env.PROJECT.getByName(`org/${scope.orgId}/${scope.projectId}`);
}

export function inProject<T>(api: TestApi, use: Inside<ProjectObject, T>): Promise<T> {
  return inside(projectStub(api), ProjectObject, use);
}

/** Fires one alarm of the project's object, `LATER_MS` from now. */
export async function alarm(api: TestApi, later = LATER_MS): Promise<void> {
  await inProject(api, async (project) => {
    project.now = () => Date.now() + later;
    await project.alarm();
  });
}

export async function remove(api: TestApi, id: string): Promise<DeletionView> {
  const reply = await api.ask(`/v1/runs/${id}`, { method: "DELETE" });
  expect(reply.status, await reply.clone().text()).toBe(202);
  return DeletionView.parse(await reply.json());
}

export async function deletion(api: TestApi, id: string): Promise<DeletionView> {
  return DeletionView.parse(await (await api.ask(`/v1/deletions/${id}`)).json());
}

/** Fires alarms until the deletion is done: it waits until its run owes nothing. `between`: called after each alarm. */
export async function done(api: TestApi, id: string, between?: () => Promise<void>): Promise<DeletionView> {
  const hangsAt = Date.now() + WAIT_HANGS_MS;
  for (let alarms = 0; Date.now() < hangsAt; alarms += 1) {
    const view = await deletion(api, id);
    if (view.state === "done") return view;
    // Later each time, so that retries are due.
    await alarm(api, LATER_MS + alarms * 60_000);
    await between?.();
  }
  throw new Error(`not done: ${JSON.stringify(await deletion(api, id))}`);
}

/** Ends the project's object like a kill: its memory is lost. */
export async function kill(api: TestApi): Promise<void> {
  await expect(inProject(api, (_, state) => state.abort("killed"))).rejects.toThrow();
}

export async function keysUnder(prefix: string): Promise<string[]> {
  const { objects } = await env.STORE.list({ prefix });
  return objects.map(({ key }) => key);
}

/** Rows of D1 that name the run, by table. */
export async function rowsOfRun(runId: string): Promise<Record<string, number>> {
  const queries = {
    runs: "select count(*) as n from runs where id = ?",
    trainer_tokens: "select count(*) as n from trainer_tokens where run_id = ?",
  };
  const counted = Object.entries(queries).map(async ([table, query]) => {
    const row = await env.DB.prepare(query).bind(runId).first<{ n: number }>();
    return [table, row?.n ?? 0] as const;
  });
  return Object.fromEntries(await Promise.all(counted));
}

/** Nothing is left of the run: no rows, no files, no storage of its objects. `hosts`: the shards that it had. */
export async function expectGone(
  api: TestApi,
  runId: string,
  shards: readonly DurableObjectStub[] = [],
): Promise<void> {
  expect(await rowsOfRun(runId)).toEqual({ runs: 0, trainer_tokens: 0 });
  expect(await keysUnder(runFolder(api.scope, runId))).toEqual([]);
  const left = await api.inRun(runId, async (run, { storage }) => {
    return { view: await run.view(), kv: [...storage.kv.list()].map(([key]) => key), tables: tablesOf(storage) };
  });
  expect(left).toEqual({ view: null, kv: ["freed_at"], tables: [] });
  for (const shard of shards) expect(await storedIn(shard)).toEqual([]);
}

function tablesOf({ sql }: DurableObjectStorage): unknown[] {
  return sql.exec("select name from sqlite_master where name not like '\\_cf%' escape '\\'").toArray();
}

async function storedIn(stub: DurableObjectStub): Promise<unknown[]> {
  return await inside(stub, RolloutObject, (_, { storage }) => tablesOf(storage));
}
