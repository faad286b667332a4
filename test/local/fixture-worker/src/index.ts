import { DurableObject } from "cloudflare:workers";

interface Bindings {
  readonly COUNTER: DurableObjectNamespace<CounterObject>;
  readonly DB: D1Database;
  readonly NOTES: Queue<string>;
  readonly KNOCKS: RateLimit;
  readonly LIVE_OBJECT_CEILING: number;
  readonly ROLLCALL_SECRET: string;
  readonly NETWORK?: Fetcher;
}

export class CounterObject extends DurableObject<Bindings> {
  increment(): number {
    const count = (this.ctx.storage.kv.get<number>("count") ?? 0) + 1;
    this.ctx.storage.kv.put("count", count);
    return count;
  }
}

async function answer(request: Request, env: Bindings): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  switch (pathname) {
    case "/healthz":
      return new Response("ok");
    case "/count":
      return Response.json(await env.COUNTER.getByName("one").increment());
    case "/note":
      await env.NOTES.send("fails");
      return new Response("sent");
    case "/notes":
      return Response.json((await env.DB.prepare("SELECT body FROM notes").all()).results);
    case "/keys":
      return Response.json((await env.DB.prepare("SELECT * FROM api_keys").all()).results);
    case "/vars":
      return Response.json({ ceiling: env.LIVE_OBJECT_CEILING, secret: env.ROLLCALL_SECRET });
    case "/knock":
      return Response.json(await env.KNOCKS.limit({ key: searchParams.get("by") ?? "" }));
    case "/calls":
      return await (env.NETWORK ?? globalThis)
        .fetch(searchParams.get("at") ?? "")
        .catch((thrown: unknown) => new Response(String(thrown), { status: 502 }));
    default:
      return new Response("no such page", { status: 404 });
  }
}

export default {
  fetch: answer,
  /** Every note fails on its own queue and is stored when it arrives on the dead-letter queue. */
  async queue(batch: MessageBatch<string>, env: Bindings): Promise<void> {
    if (batch.queue !== "notes-dead") {
      batch.retryAll();
      return;
    }
    for (const message of batch.messages) {
      await env.DB.prepare("INSERT INTO notes (body) VALUES (?)").bind(message.body).run();
    }
  },
};
