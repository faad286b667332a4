/**
 * A collector of spans on loopback. It stores what is posted to `/{name}/v1/traces` under the name; `GET /{name}`
 * returns the bodies and headers of all. A `{name}` that begins with `refuse-` and a status gets that status as the
 * answer; one that begins with `once-` gets it the first time only.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Received {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export async function startCollector(): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  const received = new Map<string, Received[]>();
  const answer = async (request: IncomingMessage): Promise<[status: number, body: unknown]> => {
    const [, name = "", path = ""] = /^\/([^/]+)(.*)$/.exec(request.url ?? "") ?? [];
    const known = received.get(name) ?? [];
    if (request.method === "GET") return [200, known];
    if (path !== "/v1/traces") return [404, {}];
    received.set(name, [...known, { headers: request.headers, body: await text(request) }]);
    const refusal = /^(refuse|once)-(\d+)/.exec(name);
    if (refusal?.[1] === "refuse" || (refusal !== null && known.length === 0)) return [Number(refusal[2]), {}];
    if (name.startsWith("partial-")) return [200, { partialSuccess: { rejectedSpans: "2", errorMessage: "too old" } }];
    return [200, {}];
  };
  const server = createServer((request, response) => {
    answer(request).then(
      ([status, body]) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)),
      (thrown: unknown) => response.writeHead(500).end(String(thrown)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
