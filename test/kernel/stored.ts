/** Everything that is stored, as texts that a test can search. */
import { env } from "cloudflare:workers";
import type { RunView } from "../../src/contract/run.ts";
import { EndpointObject } from "../../src/kernel/endpoint/object.ts";
import { inside, rolloutAt, type TestApi } from "./platform.ts";

const TABLES = "select name from sqlite_master where type = 'table' and name not like '\\_cf%' escape '\\'";

/** All of D1 and of R2, and the objects of these runs, of their first rollouts and of the policies' endpoints. */
export async function everythingStored(api: TestApi, runs: readonly RunView[]): Promise<string[]> {
  const { orgId, projectId } = api.scope;
  const endpointStub = (id: string) => env.ENDPOINT.getByName(`org/${orgId}/${projectId}/${id}`);
  const objects = runs.flatMap(({ id, endpoint }) => [
    api.inRun(id, dump),
    api.inRollout(rolloutAt(id), dump),
    inside(endpointStub(endpoint?.id ?? ""), EndpointObject, dump),
  ]);
  return [...(await everythingInD1()), ...(await everythingInR2()), ...(await Promise.all(objects))];
}

async function everythingInD1(): Promise<string[]> {
  const { results } = await env.DB.prepare(TABLES).all<{ name: string }>();
  const statements = results.map(({ name }) => env.DB.prepare(`select * from "${name}"`));
  const tables = await env.DB.batch(statements);
  return tables.map(({ results: rows }) => JSON.stringify(rows));
}

function dump(_: unknown, { storage }: DurableObjectState): string {
  const tables = storage.sql.exec(TABLES).toArray();
  const rows = tables.map(({ name }) => storage.sql.exec(`select * from "${name}"`).toArray());
  return JSON.stringify([rows, [...storage.kv.list()]]);
}

async function everythingInR2(): Promise<string[]> {
  const { objects } = await env.STORE.list();
  const found = await Promise.all(objects.map(({ key }) => env.STORE.get(key)));
  return Promise.all(found.map(async (object) => (object === null ? "" : await readable(await object.arrayBuffer()))));
}

/** The rows, if the bytes are gzipped. */
async function readable(bytes: ArrayBuffer): Promise<string> {
  const [first, second] = new Uint8Array(bytes);
  const zipped = first === 0x1f && second === 0x8b;
  const stream = new Blob([bytes]).stream();
  const plain = zipped ? stream.pipeThrough(new DecompressionStream("gzip")) : stream;
  return await new Response(plain).text();
}
