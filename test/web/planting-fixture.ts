/**
 * The Worker as it is, with a door beside its own: what is sent to `/planted` is put in place of the segment of a run, so that a
 * test or a benchmark can show what would take hours to play.
 */
import worker from "../../src/index.ts";
import type { RunMessage } from "../../src/runtime/contract/wire.ts";

// biome-ignore lint/performance/noReExportAll: whatever else the Worker exports stays as it is
// biome-ignore lint/performance/noBarrelFile: an entry module is one
export * from "../../src/index.ts";

export default {
  ...worker,
  async fetch(request: Request, env: Env, context: ExecutionContext): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== "/planted") return await worker.fetch(request, env, context);
    const run = searchParams.get("run") ?? "";
    const { objects } = await env.STORE.list({ include: [] });
    const segment = objects.find(({ key }) => key.includes(`/${run}/segments/`));
    if (segment === undefined) return new Response("no segment yet", { status: 404 });
    if (request.method === "GET") return new Response((await env.STORE.get(segment.key))?.body ?? null);
    await env.STORE.put(segment.key, await request.arrayBuffer());
    return new Response("planted");
  },
} satisfies ExportedHandler<Env, RunMessage>;
