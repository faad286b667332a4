/**
 * Keeps one comment on a pull request, by GitHub's REST API: the first run creates it, later runs update it.
 *
 * The comment is found by a marker at its start, and only among those of the token's own author: others could write the
 * marker too, and could then edit what they are given.
 */
import { at, jsonOf, numberAt, textAt } from "./inputs.ts";

export interface PullRequest {
  /** GITHUB_API_URL. */
  readonly api: string;
  /** owner/name */
  readonly repository: string;
  readonly number: number;
  readonly token: string;
}

/** GitHub refused a request. */
export class GithubRefusal extends Error {
  override readonly name = "GithubRefusal";
  readonly status: number;

  constructor(status: number, message: string) {
    super(`GitHub answered ${status}: ${message}`);
    this.status = status;
  }
}

/** GitHub's limit for a comment. */
const LONGEST = 65_536;
const PER_PAGE = 100;
/** An issue takes 2,500 comments. */
const PAGES = 25;
const ANSWER_WITHIN_MS = 30_000;

/** The address of the comment. `text` is Markdown; `marker` is an HTML comment. Throws GithubRefusal. */
export async function keepComment(pull: PullRequest, marker: string, text: string): Promise<string> {
  const fits = marker.length + 1 + text.length <= LONGEST;
  const body = `${marker}\n${fits ? text : "The result is too long for a comment: it is in the summary of the job.\n"}`;
  const own = await findComment(pull, marker);
  const issues = `/repos/${pull.repository}/issues`;
  const written =
    own === null
      ? await ask(pull, "POST", `${issues}/${pull.number}/comments`, { body })
      : await ask(pull, "PATCH", `${issues}/comments/${own}`, { body });
  return textAt(written, "html_url") ?? "";
}

async function findComment(pull: PullRequest, marker: string): Promise<number | null> {
  const author = await authorOf(pull);
  for (let page = 1; page <= PAGES; page++) {
    const path = `/repos/${pull.repository}/issues/${pull.number}/comments?per_page=${PER_PAGE}&page=${page}`;
    const comments = await ask(pull, "GET", path);
    if (!Array.isArray(comments)) throw new GithubRefusal(200, "the comments are not a list");
    const own = comments.find((comment) => isOwn(comment, author) && textAt(comment, "body")?.startsWith(marker));
    if (own !== undefined) return numberAt(own, "id");
    if (comments.length < PER_PAGE) return null;
  }
  return null;
}

/** The login of a person's token. Null for a token of a workflow or an app, which may not ask who it is. */
async function authorOf(pull: PullRequest): Promise<string | null> {
  try {
    return textAt(await ask(pull, "GET", "/user"), "login");
  } catch (error) {
    if (error instanceof GithubRefusal && (error.status === 403 || error.status === 404)) return null;
    throw error;
  }
}

function isOwn(comment: unknown, author: string | null): boolean {
  return author === null ? at(comment, "user", "type") === "Bot" : at(comment, "user", "login") === author;
}

async function ask({ api, token }: PullRequest, method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${api}${path}`, {
    method,
    headers: {
      accept: "application/vnd.github+json",
      authorization: `Bearer ${token}`,
      "x-github-api-version": "2022-11-28",
      "user-agent": "rollcall-action",
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  const text = await response.text();
  // A proxy may answer with a page.
  const json = jsonOf(text);
  if (response.ok && json !== undefined) return json;
  throw new GithubRefusal(response.status, textAt(json, "message") ?? text.slice(0, 200));
}
