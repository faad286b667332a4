/**
 * Cloudflare Access from the view of a deployment behind it: the keys of a team at its URL, and assertions signed with
 * them. The first part of a path names a team. Tests in workerd control it by POST.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

export interface SignOrder {
  readonly claims: JWTPayload;
  /** Another algorithm than Access uses, with the key's public half as its secret. */
  readonly forged?: boolean;
}

interface Key {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly jwk: object;
}

class Team {
  /** The newest one signs. */
  readonly #keys: Key[] = [];
  asked = 0;
  failing = false;

  async rotate(): Promise<void> {
    const { privateKey, publicKey } = await generateKeyPair("RS256");
    const kid = crypto.randomUUID();
    this.#keys.push({ kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: "RS256", use: "sig" } });
  }

  certs(): object {
    this.asked += 1;
    return { keys: this.#keys.map(({ jwk }) => jwk), public_certs: [] };
  }

  /** Executes an order of a test. */
  async obey(what: string, order: string): Promise<unknown> {
    if (what === "sign") return await this.#sign(JSON.parse(order));
    if (what === "rotate") await this.rotate();
    if (what === "fail") this.failing = true;
    return this.asked;
  }

  async #sign({ claims, forged }: SignOrder): Promise<string> {
    const key = this.#keys.at(-1);
    if (key === undefined) throw new Error("the team has no key");
    const header = { alg: forged ? "HS256" : "RS256", kid: key.kid };
    const secret = forged ? new TextEncoder().encode(JSON.stringify(key.jwk)) : key.privateKey;
    return await new SignJWT(claims).setProtectedHeader(header).sign(secret);
  }
}

export async function startAccess(): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  const teams = new Map<string, Team>();
  const answer = async (request: IncomingMessage): Promise<[status: number, body: unknown]> => {
    const [, name = "", what = ""] = /^\/([^/]+)\/(.*)$/.exec(request.url ?? "") ?? [];
    const team = teams.get(name) ?? new Team();
    if (!teams.has(name)) await team.rotate();
    teams.set(name, team);
    if (what === "cdn-cgi/access/certs") return team.failing ? [500, {}] : [200, team.certs()];
    return [200, await team.obey(what, await textOf(request))];
  };
  const server = createServer((request, response) => {
    answer(request).then(
      ([status, body]) => response.writeHead(status).end(JSON.stringify(body ?? null)),
      (thrown: unknown) => response.writeHead(400).end(String(thrown)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      server.closeAllConnections();
      await stop();
    },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}
