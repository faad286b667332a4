/**
 * The part of GitHub's REST API (2022-11-28) that comments on pull requests, on loopback: its paths, pages, errors and
 * objects are GitHub's.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import * as z from "zod";

/** Tokens, by what GitHub says to them. */
export const TOKENS = {
  /** The GITHUB_TOKEN of a job with `pull-requests: write`. */
  job: "ghs_job",
  /** The GITHUB_TOKEN of a job of a fork. */
  fork: "ghs_fork",
  /** A token of the person `octocat`. */
  person: "ghp_person",
};

const BOT = { login: "github-actions[bot]", id: 41898282, type: "Bot", site_admin: false };
const PERSON = { login: "octocat", id: 1, type: "User", site_admin: false };
const Written = z.object({ body: z.string() });

export interface FakeComment {
  readonly id: number;
  readonly user: typeof BOT;
  body: string;
}

export interface FakeGithub {
  readonly url: string;
  /** In GitHub's order. */
  readonly comments: FakeComment[];
  /** Method and path of each request. */
  readonly requests: string[];
  add(comment: { readonly by: "bot" | "person"; readonly body: string }): FakeComment;
  stop(): Promise<void>;
}

export async function startGithub(repository: string, pull: number): Promise<FakeGithub> {
  const comments: FakeComment[] = [];
  const requests: string[] = [];
  const add: FakeGithub["add"] = ({ by, body }) => {
    const comment = { id: 1000 + comments.length, user: by === "bot" ? BOT : PERSON, body };
    comments.push(comment);
    return comment;
  };
  const issues = `/repos/${repository}/issues`;

  async function answer(request: IncomingMessage): Promise<Answer> {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://github");
    const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
    const call = `${request.method} ${pathname}`;
    requests.push(call);
    if (!Object.values(TOKENS).includes(token)) return refusal(401, "Bad credentials");
    if (call === "GET /user") return userOf(token);
    if (call === `GET ${issues}/${pull}/comments`) return { status: 200, body: pageOf(searchParams) };
    if (token === TOKENS.fork) return refusal(403, NOT_ALLOWED);
    const { body } = Written.parse(JSON.parse(await text(request)));
    if (body.length > 65_536) return refusal(422, "Validation Failed");
    return write(call, token === TOKENS.person ? "person" : "bot", body);
  }

  function pageOf(query: URLSearchParams): object[] {
    const size = Math.min(100, Number(query.get("per_page") ?? 30));
    const start = (Number(query.get("page") ?? 1) - 1) * size;
    return comments.slice(start, start + size).map(shown);
  }

  function write(call: string, by: "bot" | "person", body: string): Answer {
    if (call === `POST ${issues}/${pull}/comments`) return { status: 201, body: shown(add({ by, body })) };
    const edited = comments.find(({ id }) => call === `PATCH ${issues}/comments/${id}`);
    if (edited === undefined) return refusal(404, "Not Found");
    edited.body = body;
    return { status: 200, body: shown(edited) };
  }

  const shown = ({ id, user, body }: FakeComment) => ({
    url: `https://api.github.com${issues}/comments/${id}`,
    html_url: `https://github.com/${repository}/pull/${pull}#issuecomment-${id}`,
    issue_url: `https://api.github.com${issues}/${pull}`,
    ...{ id, node_id: `IC_${id}`, user, body },
    ...{ created_at: "2026-11-21T10:52:09Z", updated_at: "2026-11-21T10:52:09Z" },
    author_association: user === BOT ? "NONE" : "CONTRIBUTOR",
    performed_via_github_app: null,
  });

  const server = createServer(async (request, response) => {
    const { status, body } = await answer(request);
    response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { url: `http://127.0.0.1:${port}`, comments, requests, add, stop };
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const NOT_ALLOWED = "Resource not accessible by integration";

function userOf(token: string): Answer {
  return token === TOKENS.person ? { status: 200, body: PERSON } : refusal(403, NOT_ALLOWED);
}

function refusal(status: number, message: string): Answer {
  return { status, body: { message, documentation_url: "https://docs.github.com/rest", status: String(status) } };
}
