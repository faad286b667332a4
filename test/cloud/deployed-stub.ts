/**
 * A stand-in for a deployed platform on loopback. It answers from what the Worker of the stub has: its secrets, its
 * database and its schema. It is ready only when everything of this release exists.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { migrationsIn } from "../../src/local/migrate.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import type { CloudflareStub } from "./cloudflare-stub.ts";

type Answer = readonly [status: number, body: object];

const RELEASE = migrationsIn(join(PACKAGE_ROOT, "migrations"));
const refuse = (status: number, code: string): Answer => [
  status,
  { error: { code, message: code, param: null, type: "x" } },
];

/** `name`: of the Worker and of its database. */
export async function startDeployed(stub: CloudflareStub, name: string) {
  const keys = new Set<string>();
  /** How often /readyz answers that it is not ready although it is, and how often the bootstrap route is open too long. */
  const late = { times: 0, closings: 0 };
  const bootstrap = async (request: IncomingMessage): Promise<Answer> => {
    const token = stub.workers.get(name)?.secrets["ROLLCALL_BOOTSTRAP_TOKEN"];
    if (token === undefined && late.closings > 0) {
      late.closings -= 1;
      return refuse(401, "unauthorized");
    }
    if (token === undefined) return refuse(404, "not_found");
    if (request.headers.authorization !== `Bearer ${token}`) return refuse(401, "unauthorized");
    const { name: organization } = (await json(request)) as { name: string };
    const key = `rk_${createHash("sha256").update(`${token}${request.headers["idempotency-key"]}`).digest("hex").slice(0, 48)}`;
    const database = stub.database(name);
    const founded = database?.prepare("SELECT id FROM organizations").all() ?? [];
    if (founded.length > 0 && !keys.has(key)) return refuse(409, "conflict");
    if (founded.length === 0) {
      database
        ?.prepare("INSERT INTO organizations (id, name, limits, created_at) VALUES ('org_1', ?, '{}', 1)")
        .run(organization);
    }
    keys.add(key);
    return [201, { object: "organization", id: "org_1", name: organization, key: { object: "key", id: "key_1", key } }];
  };
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const worker = stub.workers.get(name);
    if (worker === undefined) return refuse(404, "no Worker");
    const bearer = request.headers.authorization?.replace("Bearer ", "") ?? "";
    switch (`${request.method} ${request.url}`) {
      case "GET /healthz":
        return [200, { status: "ok" }];
      case "GET /readyz": {
        const schema = stub.migrationsOf(name).join() === RELEASE.join();
        const secret = /^[0-9a-f]{64}$/.test(worker.secrets["ROLLCALL_SECRET"] ?? "");
        const consumed = [...stub.queues.values()].every(({ consumers }) => consumers.length > 0);
        if (schema && secret && consumed && late.times === 0) return [200, { status: "ready", draining_since: null }];
        late.times = Math.max(0, late.times - 1);
        return [503, { status: "not_ready", checks: { schema, secret, consumed } }];
      }
      case "GET /openapi.json":
        return [200, { openapi: "3.1.0", info: { version: "1" } }];
      case "POST /v1/bootstrap":
        return await bootstrap(request);
      case "GET /v1/whoami":
        return keys.has(bearer) ? [200, { object: "caller" }] : refuse(401, "unauthorized");
      default:
        return refuse(404, "not_found");
    }
  };
  const server = createServer((request, response) => {
    const asked = async () => {
      const answered = await answer(request);
      await stub.note(`${request.method} ${request.url}`);
      return answered;
    };
    asked().then(
      ([status, body]) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)),
      (thrown: unknown) => response.writeHead(500).end(String(thrown)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { url: `http://127.0.0.1:${port}`, late, stop };
}
