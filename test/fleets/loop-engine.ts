/** Fake engines behind the network of a fleet object: vLLM's routes for `reload`, and what they really serve. */
import type { Send } from "../../src/kernel/clients/outgoing.ts";

/** A fault of the next request of a route: the request or its reply never arrives. */
export type Cut = "before" | "after";

export class LoopEngine {
  weights = "base";
  paused = false;
  alive = true;
  startedAt = 1000;
  label = "default";
  readonly asked: string[] = [];
  /** The next request of this route hangs forever; null: it has arrived. */
  cut: { readonly route: string; readonly at: Cut } | null = null;
  #held: { readonly route: string; readonly met: () => void; readonly released: Promise<void> } | null = null;

  /** Answers the next request of a route only once it is released. */
  hold(route: string): { readonly met: Promise<void>; readonly release: () => void } {
    const [met, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.#held = { route, met: met.resolve, released: released.promise };
    return { met: met.promise, release: released.resolve };
  }

  /** Requests of these routes wait until they are opened. */
  readonly #shut = new Map<string, Promise<void>>();
  waiting = false;

  /** Call it, and the function that it returns, from within the calling object. */
  shut(route: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#shut.set(route, promise);
    return resolve;
  }

  restart(): void {
    Object.assign(this, { weights: "base", paused: false, label: "default", startedAt: this.startedAt + 1 });
  }

  async answer(path: string, body: string): Promise<Response> {
    if (!this.alive) throw new TypeError("connection refused");
    const shut = this.#shut.get(path);
    this.waiting ||= shut !== undefined;
    await shut;
    this.asked.push(path);
    const { cut } = this;
    const met = cut?.route === path ? cut : null;
    if (met !== null) this.cut = null;
    if (met?.at === "before") return await hung();
    const held = this.#held?.route === path ? this.#held : null;
    if (held !== null) {
      this.#held = null;
      held.met();
      await held.released;
    }
    const reply = this.#reply(path, body);
    return met === null ? reply : await hung();
  }

  #reply(path: string, body: string): Response {
    switch (path) {
      case "/v1/models":
        return Response.json({ data: [{ id: "base" }] });
      case "/metrics":
        return new Response(`process_start_time_seconds ${this.startedAt}\n`);
      case "/weight_info":
        return Response.json({ weight_version: this.label });
      case "/is_paused":
        return Response.json({ is_paused: this.paused });
      case "/pause":
        this.paused = true;
        return Response.json({ status: "paused" });
      case "/resume":
        this.paused = false;
        return Response.json({ status: "resumed" });
      case "/collective_rpc":
        this.weights = JSON.parse(body).kwargs.weights_path;
        return Response.json({ results: [null] });
      case "/update_weight_version":
        this.label = JSON.parse(body).new_version;
        return Response.json({ success: true, new_version: this.label });
      default:
        return new Response(null, { status: path === "/health" || path === "/reset_prefix_cache" ? 200 : 404 });
    }
  }
}

function hung(): Promise<Response> {
  return new Promise(() => {
    // Nobody ever hears of it.
  });
}

/** Engines by host name. */
export function networkOf(engines: Readonly<Record<string, LoopEngine>>): Send {
  return async ({ hostname, pathname }, { body }) => {
    const engine = engines[hostname];
    if (engine === undefined) throw new TypeError(`nobody is ${hostname}`);
    return await engine.answer(pathname, String(body ?? ""));
  };
}
