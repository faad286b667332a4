/**
 * The control port of a local platform, on loopback: loads an environment's folder into the running platform, so that a
 * command can play code that the platform was started without. Requests need the platform's key: whoever has it can already
 * read the state directory, and the code of the folder is run as that of `rollcall serve --env`.
 */
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import * as z from "zod";
import { messageOf } from "../contract/errors.ts";
import {
  type EnvironmentPackage,
  environmentPackage,
  environmentPackagesIn,
  NoEnvironmentPackage,
} from "./environment-package.ts";

interface ControlOptions {
  /** The folder of Rollcall, whose environments keep their names. */
  readonly root: string;
  readonly log: (line: string) => void;
  /** Only used once requests arrive. */
  readonly platform: () => Loading;
}

/** What a platform offers for this: see `Platform`. */
interface Loading {
  readonly key: string;
  environments(): readonly EnvironmentPackage[];
  load(change: (held: readonly EnvironmentPackage[]) => readonly EnvironmentPackage[]): Promise<void>;
}

export interface Control {
  readonly url: string;
  stop(): Promise<void>;
}

const LoadRequest = z.strictObject({ folder: z.string().max(4096) });
/** What the platform has now; `replaced`: it had other code of the same name. */
export const LoadReply = z.object({ id: z.string(), version: z.string(), digest: z.string(), replaced: z.boolean() });
export type LoadReply = z.infer<typeof LoadReply>;
export const LoadRefusal = z.object({ message: z.string() });

/** More than a folder's path needs. */
const BODY_BYTES = 16 * 1024;

export async function startControl(options: ControlOptions): Promise<Control> {
  const server = createServer((request, response) => void reply(options, request, response));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}`, stop };
}

async function reply(options: ControlOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const send = (status: number, body: LoadReply | z.infer<typeof LoadRefusal>) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  try {
    if (!hasKey(request, options.platform().key)) return send(401, { message: "the key of the platform is required" });
    if (request.method !== "POST" || request.url !== "/environments") return send(404, { message: "no such route" });
    send(200, await loadFolder(options, LoadRequest.parse(JSON.parse(await bodyOf(request))).folder));
  } catch (error) {
    const theirs = error instanceof NoEnvironmentPackage || error instanceof z.ZodError || error instanceof SyntaxError;
    send(theirs ? 400 : 500, { message: messageOf(error) });
  }
}

function hasKey({ headers }: IncomingMessage, key: string): boolean {
  const [given, wanted] = [headers.authorization ?? "", `Bearer ${key}`].map((text) => Buffer.from(text));
  return (
    given !== undefined && wanted !== undefined && given.length === wanted.length && timingSafeEqual(given, wanted)
  );
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) {
    text += piece;
    if (text.length > BODY_BYTES) throw new SyntaxError(`the body is longer than ${BODY_BYTES} bytes`);
  }
  return text;
}

/** Those that are held, with these in place of others with their ids. */
export function withEnvironments(
  held: readonly EnvironmentPackage[],
  fresh: readonly EnvironmentPackage[],
): readonly EnvironmentPackage[] {
  return [...held.filter(({ id }) => fresh.every((it) => it.id !== id)), ...fresh];
}

async function loadFolder({ root, log, platform }: ControlOptions, folder: string): Promise<LoadReply> {
  const { environments, load } = platform();
  const own = environmentPackage(folder);
  const { id, version, digest } = own;
  if (environmentPackagesIn(join(root, "environments")).some((built) => built.id === id)) {
    throw new NoEnvironmentPackage(`${id} is the name of a built-in environment`);
  }
  const before = environments();
  const replaced = before.some((it) => it.id === id && it.digest !== digest);
  await load((held) => withEnvironments(held, [own]));
  if (!before.some((it) => it.digest === digest)) log(`Loaded ${id}@${version} from ${own.folder}; runs continue.`);
  return { id, version, digest, replaced };
}
