/**
 * A fake Hugging Face on loopback, with the wire format of the Hub: information about a dataset, its conversion to
 * Parquet, and files that redirect to a store on another origin, which answers ranges. Errors have the headers
 * `X-Error-Code` and `X-Error-Message` as the Hub sends them. Sources: https://huggingface.co/docs/hub/api and
 * https://huggingface.co/docs/dataset-viewer/parquet.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface FakeDataset {
  /** By path. */
  readonly files?: Readonly<Record<string, Uint8Array | string>>;
  /** Configurations, their splits, and the converted files of each; absent: not converted. */
  readonly converted?: Readonly<Record<string, Readonly<Record<string, readonly Uint8Array[]>>>>;
  /** The front matter of its README. */
  readonly cardData?: object;
  /** Besides the commit and `main`. */
  readonly revisions?: readonly string[];
  readonly private?: boolean;
  readonly gated?: boolean;
}

export const HF_TOKEN = "hf_ofTheTest";
export const COMMIT = "0123456789abcdef0123456789abcdef01234567";

type Fault =
  /** The connection is cut after so many bytes. */
  | { readonly cutAfter: number }
  | { readonly status: number; readonly retryAfter?: string }
  /** Called instead of a reply. */
  | { readonly hangs: () => void };

export interface FakeHuggingFace {
  readonly url: string;
  readonly datasets: Map<string, FakeDataset>;
  /** `GET /path range` of every request to the hub and to its store. */
  readonly seen: string[];
  /** The names of the requests' headers to the store: it must never get the token. */
  readonly storeHeaders: Set<string>;
  /** Applied to the next replies of the store, one to each; null: none. */
  readonly faults: (Fault | null)[];
  stop(): Promise<void>;
}

export async function startHuggingFace(): Promise<FakeHuggingFace> {
  const fake: FakeHuggingFace = {
    ...{ url: "", datasets: new Map(), seen: [], storeHeaders: new Set(), faults: [] },
    stop: async () => undefined,
  };
  const stored = new Map<string, Uint8Array>();
  const store = await listen((request, response) => answerFromStore(fake, stored, request, response));
  const hub = await listen((request, response) => {
    fake.seen.push(`${request.method} ${request.url}${rangeText(request)}`);
    const { status, headers, body } = answerFromHub(fake.datasets, stored, store.url, request);
    response.writeHead(status, headers).end(body && JSON.stringify(body));
  });
  const stop = async () => {
    await Promise.all([hub.stop(), store.stop()]);
  };
  return Object.assign(fake, { url: hub.url, stop });
}

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** The hub's reply. A file that it redirects to is added to `stored`. */
function answerFromHub(
  datasets: ReadonlyMap<string, FakeDataset>,
  stored: Map<string, Uint8Array>,
  storeUrl: string,
  request: IncomingMessage,
): Reply {
  const { pathname } = new URL(request.url ?? "", "http://hub");
  const { authorization } = request.headers;
  const [, id = "", rest = ""] = /^\/(?:api\/)?datasets\/([^/]+\/[^/]+)(.*)$/.exec(pathname) ?? [];
  const dataset = datasets.get(id);
  const isKnown = authorization !== undefined;
  const refusal = refusalOf(dataset, authorization);
  if (refusal !== null || dataset === undefined) return refusal ?? refuse(404, "RepoNotFound", "Repository not found");
  const [isInfo, revision] = /^(?:\/revision\/([^/]+))?$/.exec(rest) ?? [];
  if (isInfo !== undefined) return infoReply(id, dataset, decodeURIComponent(revision ?? "main"));
  if (dataset.gated === true && !isKnown) {
    const advice = "You must have access to it and be authenticated to access it. Please log in.";
    return refuse(401, "GatedRepo", `Access to dataset ${id} is restricted. ${advice}`);
  }
  if (pathname.startsWith("/api/")) return conversionReply(id, dataset, rest);
  const [, ref = "", path = ""] = /^\/resolve\/([^/]+)\/(.*)$/.exec(rest) ?? [];
  const content = contentOf(dataset, decodeURIComponent(ref), decodeURIComponent(path));
  if (content === undefined) return refuse(404, "EntryNotFound", "Entry not found");
  const etag = createHash("sha256").update(content).digest("hex");
  stored.set(etag, content);
  const linked = { "x-linked-size": String(content.length), "x-linked-etag": `"${etag}"`, "x-repo-commit": COMMIT };
  return { status: 302, headers: { ...linked, location: `${storeUrl}/${etag}?Signature=s` } };
}

/** As for a caller that may not see the dataset; a dataset that does not exist looks the same. */
function refusalOf(dataset: FakeDataset | undefined, authorization: string | undefined): Reply | null {
  if (authorization === undefined) {
    const isVisible = dataset !== undefined && dataset.private !== true;
    return isVisible ? null : refuse(401, null, "Invalid username or password.");
  }
  if (authorization === `Bearer ${HF_TOKEN}`) return null;
  return refuse(401, null, "Invalid credentials in Authorization header");
}

function infoReply(id: string, dataset: FakeDataset, revision: string): Reply {
  if (!isRevision(dataset, revision)) return refuse(404, "RevisionNotFound", `Invalid rev id: ${revision}`);
  const siblings = Object.keys(dataset.files ?? {}).map((rfilename) => ({ rfilename }));
  const { gated = false, cardData = null } = dataset;
  return json({ id, sha: COMMIT, private: dataset.private ?? false, gated, cardData, siblings });
}

/** The list of converted files, whose addresses are those of the public hub also on a mirror; or one of them. */
function conversionReply(id: string, { converted }: FakeDataset, rest: string): Reply {
  const [, config = "", split = "", file] = /^\/parquet\/([^/]+)\/([^/]+)\/(\d+)\.parquet$/.exec(rest) ?? [];
  if (file !== undefined) {
    const path = `${config}/${split}/${file.padStart(4, "0")}.parquet`;
    return { status: 302, headers: { location: `/datasets/${id}/resolve/refs%2Fconvert%2Fparquet/${path}` } };
  }
  if (converted === undefined) return refuse(404, null, "Parquet files are not available for this dataset");
  const configs = Object.entries(converted).map(([name, splits]) => {
    const urls = Object.entries(splits).map(([part, files]) => [
      part,
      files.map((_, at) => `https://huggingface.co/api/datasets/${id}/parquet/${name}/${part}/${at}.parquet`),
    ]);
    return [name, Object.fromEntries(urls)];
  });
  return json(Object.fromEntries(configs));
}

function refuse(status: number, code: string | null, message: string): Reply {
  const headers = { "x-error-message": message, ...(code !== null && { "x-error-code": code }) };
  return { status, headers: { ...headers, "content-type": "application/json" }, body: { error: message } };
}

function json(body: object): Reply {
  return { status: 200, headers: { "content-type": "application/json" }, body };
}

function isRevision({ revisions = [] }: FakeDataset, name: string): boolean {
  return [COMMIT, "main", ...revisions].includes(name);
}

function contentOf(dataset: FakeDataset, revision: string, path: string): Uint8Array | undefined {
  if (revision === "refs/convert/parquet") {
    const [config = "", split = "", file = ""] = path.split("/");
    return dataset.converted?.[config]?.[split]?.[Number.parseInt(file, 10)];
  }
  const content = isRevision(dataset, revision) ? dataset.files?.[path] : undefined;
  return content === undefined ? undefined : Buffer.from(content);
}

function answerFromStore(
  fake: Pick<FakeHuggingFace, "seen" | "storeHeaders" | "faults">,
  stored: ReadonlyMap<string, Uint8Array>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  for (const name of Object.keys(request.headers)) fake.storeHeaders.add(name);
  fake.seen.push(`${request.method} store${rangeText(request)}`);
  const etag = (request.url ?? "").slice(1).replace(/\?.*$/, "");
  const content = stored.get(etag) ?? Buffer.from("");
  const fault = fake.faults.shift() ?? null;
  if (fault !== null && "hangs" in fault) fault.hangs();
  else if (fault !== null && "status" in fault) {
    response.writeHead(fault.status, fault.retryAfter === undefined ? {} : { "retry-after": fault.retryAfter }).end();
  } else sendRange(etag, content, request.headers.range, response, fault);
}

function sendRange(
  etag: string,
  content: Uint8Array,
  range: string | undefined,
  response: ServerResponse,
  fault: { readonly cutAfter: number } | null,
): void {
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
  if (from === undefined) {
    response.writeHead(200, { etag: `"${etag}"`, "content-length": content.length }).end(content);
    return;
  }
  const start = Number(from);
  if (start >= content.length) {
    response.writeHead(416, { "content-range": `bytes */${content.length}` }).end();
    return;
  }
  const end = Math.min(content.length, to === "" ? content.length : Number(to) + 1);
  const part = content.subarray(start, end);
  response.writeHead(206, {
    ...{ etag: `"${etag}"`, "content-length": part.length, "accept-ranges": "bytes" },
    "content-range": `bytes ${start}-${end - 1}/${content.length}`,
  });
  if (fault === null) response.end(part);
  else response.write(part.subarray(0, fault.cutAfter), () => response.destroy());
}

function rangeText({ headers }: IncomingMessage): string {
  return headers.range === undefined ? "" : ` ${headers.range}`;
}

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}
