/**
 * The Worker with additional routes, so that a test or a benchmark can show data that would take hours to play: a body
 * sent to `/planted` replaces the segment of a run, and `/planted-rollouts` replaces its rollouts.
 */
import worker, { RunObject as Run } from "../../src/index.ts";
import { folderOf } from "../../src/kernel/kit/names.ts";
import type { RunMessage } from "../../src/kernel/messages/wire.ts";
import { plantRollouts } from "./plant-rollouts.ts";

// biome-ignore lint/performance/noReExportAll: whatever else the Worker exports stays as it is
// biome-ignore lint/performance/noBarrelFile: an entry module is one
export * from "../../src/index.ts";

/** A run's object with an additional route. */
export class RunObject extends Run {
  override async fetch({ method, url }: Request): Promise<Response> {
    if (method === "DELETE") this.ctx.abort("what it remembers is out of date");
    const { storage } = this.ctx;
    const planted = plantRollouts(storage, this.env, Number(new URL(url).searchParams.get("rollouts")));
    await storage.sync();
    return planted ? new Response("planted") : new Response("it has not ended", { status: 409 });
  }
}

export default {
  ...worker,
  async fetch(request: Request, env: Env, context: ExecutionContext): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const run = searchParams.get("run") ?? "";
    if (pathname === "/planted") return await segmentApi(request, env, run);
    if (pathname === "/planted-rollouts") return await rolloutsApi(request, env, run);
    return await worker.fetch(request, env, context);
  },
} satisfies ExportedHandler<Env, RunMessage>;

async function segmentApi(request: Request, env: Env, run: string): Promise<Response> {
  const { objects } = await env.STORE.list({ include: [] });
  const segment = objects.find(({ key }) => key.includes(`/${run}/segments/`));
  if (segment === undefined) return new Response("no segment yet", { status: 404 });
  if (request.method === "GET") return new Response((await env.STORE.get(segment.key))?.body ?? null);
  await env.STORE.put(segment.key, await request.arrayBuffer());
  return new Response("planted");
}

/** The object's next instance finds that D1 has another report than the object, and updates it. */
async function rolloutsApi({ url }: Request, env: Env, run: string): Promise<Response> {
  const found = env.DB.prepare("select org_id as orgId, project_id as projectId from runs where id = ?").bind(run);
  const scope = await found.first<{ orgId: string; projectId: string }>();
  if (scope === null) return new Response("no such run", { status: 404 });
  const object = () => env.RUN.getByName(`${folderOf(scope)}${run}`);
  const reply = await object().fetch(url, { method: "POST" });
  const [text, { status }] = [await reply.text(), reply];
  const isAborted = await object()
    .fetch(url, { method: "DELETE" })
    .then(
      () => false,
      () => true,
    );
  return isAborted ? new Response(text, { status }) : new Response("its object goes on", { status: 500 });
}
