/**
 * The HTTP side of a trainer that gets its batches by push: it receives signed offers, checks the signature by Standard
 * Webhooks, keeps every offer, and answers as the test configures.
 */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { BatchOffer } from "../../src/contract/trainer-wire.ts";

/** The answer to an offer; "hang": none, ever; "reset": the connection is cut. */
export type OfferReply =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: unknown }
  | "hang"
  | "reset";

export interface ReceivedOffer {
  readonly id: string;
  readonly genuine: boolean;
  readonly offer: BatchOffer;
}

export interface PushReceiver {
  readonly url: string;
  readonly offers: readonly ReceivedOffer[];
  stop(): Promise<void>;
}

export interface PushReceiverOptions {
  /** whsec_…; read at each offer, because its run is created with the URL of the receiver. */
  readonly secret: () => string | Promise<string>;
  readonly reply: (received: ReceivedOffer) => OfferReply | Promise<OfferReply>;
}

/** Listens on a free port of loopback. */
export async function startPushReceiver(options: PushReceiverOptions): Promise<PushReceiver> {
  const offers: ReceivedOffer[] = [];
  const server = createServer((request, response) => {
    void receive(request, options.secret).then(async (received) => {
      offers.push(received);
      answer(response, received.genuine ? await options.reply(received) : { status: 401 });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/batches`,
    offers,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function receive(request: IncomingMessage, secretOf: PushReceiverOptions["secret"]): Promise<ReceivedOffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts).toString();
  const secret = await secretOf();
  const id = String(request.headers["webhook-id"]);
  const offer = BatchOffer.parse(JSON.parse(body));
  const sent = String(request.headers["webhook-signature"]);
  return { id, genuine: sent === signature(secret, request, body), offer };
}

/** Of the body as received, with the id and time of its headers. */
function signature(secret: string, { headers }: IncomingMessage, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const text = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return `v1,${createHmac("sha256", key).update(text).digest("base64")}`;
}

function answer(response: ServerResponse, reply: OfferReply): void {
  if (reply === "hang") return;
  if (reply === "reset") {
    response.socket?.resetAndDestroy();
    return;
  }
  const headers = { "content-type": "application/json", ...reply.headers };
  response.writeHead(reply.status, headers).end(JSON.stringify(reply.body ?? {}));
}
