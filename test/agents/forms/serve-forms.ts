/** A model address on loopback: it answers each request in its form with one reply, whole or as a stream. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  type Form,
  FormError,
  type FormReply,
  type FormRequest,
  type Refusal,
} from "../../../src/agents/forms/form.ts";
import { FORMS } from "../../../src/agents/forms/forms.ts";

export interface ModelAddress {
  readonly url: string;
  /** The requests so far. */
  readonly requests: readonly FormRequest[];
  /** Sets the answer to the next requests; a refusal ends a stream that has begun. */
  answer(reply: FormReply | Refusal): void;
  stop(): Promise<void>;
}

const PATHS: Readonly<Record<string, keyof typeof FORMS>> = {
  "/v1/chat/completions": "chat",
  "/v1/responses": "responses",
  "/v1/messages": "messages",
};

export async function serveForms(): Promise<ModelAddress> {
  const requests: FormRequest[] = [];
  let next: FormReply | Refusal | null = null;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const name = PATHS[(request.url ?? "").split("?")[0] ?? ""];
    if (name === undefined || next === null) throw new Error(`no answer to ${request.url}`);
    const parsed = parse(FORMS[name], await textOf(request));
    if (!("call" in parsed)) return sendRefusal(FORMS[name], parsed, response);
    requests.push(parsed);
    if (parsed.stream) sendStream(FORMS[name], next, parsed, response);
    else if ("status" in next) sendRefusal(FORMS[name], next, response);
    else sendJson(200, FORMS[name].whole(next, parsed.echo), response);
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    answer: (reply) => {
      next = reply;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function parse(form: Form, text: string): FormRequest | Refusal {
  try {
    return form.parse(JSON.parse(text));
  } catch (thrown) {
    if (!(thrown instanceof FormError)) throw thrown;
    return { status: 400, code: "invalid_request", message: thrown.message, param: thrown.param };
  }
}

function sendStream(form: Form, answer: FormReply | Refusal, { echo }: FormRequest, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  if ("status" in answer) response.write(form.refusalEvents(answer));
  else for (const event of form.events(answer, echo)) response.write(event);
  response.end();
}

function sendRefusal(form: Form, refusal: Refusal, response: ServerResponse): void {
  sendJson(refusal.status, form.refusal(refusal), response);
}

function sendJson(status: number, body: unknown, response: ServerResponse): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of request) pieces.push(piece as Uint8Array);
  return Buffer.concat(pieces).toString();
}
