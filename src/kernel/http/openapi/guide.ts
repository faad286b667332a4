/** What applies to every route: the introduction of the OpenAPI document and of the reference page. */

export const NOUNS: Readonly<Record<string, string>> = {
  runs: "An eval: tasks × rollouts per task against one model.",
  rollouts: "One attempt at one task: its messages, turns, usage, errors and scores.",
  agreements: "How far the scores and judges of runs agree with the people who reviewed their rollouts.",
  agents: "Programs outside the platform that play rollouts: their workers lease them.",
  model: "The address of one rollout: the APIs of OpenAI and Anthropic, for the agent that plays it.",
  environments: "A dataset, turn logic and a rubric, which runs use by name.",
  datasets: "Task rows, uploaded once and used by any number of runs.",
  "dataset-uploads": "Uploads of large datasets in parts, which can be continued.",
  endpoints: "OpenAI-compatible servers that runs call, with their sealed keys.",
  triggers: "Addresses for webhooks of other platforms: each delivery with a valid signature starts a run.",
  hooks: "Addresses that webhook senders post to: they need no key, and sign what they send.",
  fleets: "Engines that serve one policy, and how each gets new weights.",
  secrets: "Values that environments use by name. They can be written but never read.",
  "webhook-endpoints":
    "Addresses that receive events, signed as Standard Webhooks specifies, and the log of deliveries.",
  leases: "Batches that a trainer is working on.",
  organization: "Your organisation: its name, its limits, the hosts it calls.",
  organizations: "Every organisation of the deployment, for its operators.",
  projects: "Owners of runs, datasets, endpoints and secrets. Projects cannot see each other's objects.",
  keys: "Credentials of programs and people, with scopes, reach and expiry.",
  people: "Members of an organisation, and the role of each.",
  "sign-in-codes": "One-time codes for signing a browser in to the web page.",
  session: "The session of the calling browser.",
  sessions: "Browsers that are signed in to the web page.",
  "report-links": "Links that let anybody read the report of a run, until they expire or are revoked.",
  "shared-report": "Reports, read with a report link.",
  invitations: "Tokens for becoming a member.",
  deletions: "Jobs that delete data for good, with receipts of what they deleted.",
  whoami: "The caller of a request.",
  bootstrap: "The first organisation of a deployment, and its first key.",
  prices: "What the platform charges, in versions that never change.",
  balance: "The balance of an organisation.",
  ledger: "Everything that an organisation was charged and paid, entry by entry.",
  budgets: "Monthly limits on charges: in total, for a project, a key or a person.",
  "top-ups": "For operators: payments received.",
  adjustments: "For operators: refunds, disputes and corrections.",
  checkouts: "Paying by card, where the deployment takes payments through Stripe.",
  stripe: "Payment events from Stripe.",
  usage: "What was used, and what was charged for it.",
  statements: "What was charged and paid in a month, to the micro-dollar.",
  "audit-log": "Who changed what in an organisation.",
  reseal: "For operators, after `ROLLCALL_SECRET` was changed.",
  npm: 'The registry of published environments for npm clients: /npm/ is its address. Refusals are `{"error": …}`.',
  python:
    "An index of the Python environments of each owner, for pip and uv. The key may be the password of HTTP basic authentication.",
  platform: "The platform itself. These routes need no key, but for `/metrics`.",
};

/** Paragraphs are separated by an empty line; `code` is in backticks. */
export const GUIDE: readonly { readonly title: string; readonly text: string }[] = [
  {
    title: "Conventions",
    text: "Rollouts and scoring for agent evals. Wire JSON is snake_case, times are integer seconds since the epoch, and a score that was not produced is null, never 0. Every reply has an `x-request-id`; send one of your own (1 to 128 of `A-Z a-z 0-9 _ . : -`) to have it echoed.",
  },
  {
    title: "Keys",
    text: "Every route under `/v1` takes `Authorization: Bearer <key>`. A key has scopes, and each route names those it needs; `x:write` includes `x:read`, and `admin` all but `operator` and `metrics`, which concern the deployment. A key is for one project or for a whole organisation. With a key of an organisation, a request names its project in the header `Rollcall-Project`, by id or name; without the header it is the project `default`. The platform's own pages use a session cookie, with the permissions of its key or person. Objects of another project are answered as if they did not exist.\n\nRequests are counted per organisation, and per key if the key has a limit. Replies show the tighter of the two in `x-ratelimit-limit-requests`, `x-ratelimit-remaining-requests` (shared with other callers) and `x-ratelimit-reset-requests`; beyond the limit the answer is 429 with `retry-after`.",
  },
  {
    title: "Idempotency",
    text: "Every POST takes an `Idempotency-Key` of 1 to 255 printable ASCII characters. The same key with the same body returns what the first request created, with `idempotent-replayed: true`, and creates nothing new; with another body the answer is 422. Keys are scoped to one project.",
  },
  {
    title: "Lists",
    text: "A list answers with `data`, `first_id`, `last_id` and `has_more`. Get the next page with `after=<last_id>`. `limit` is 1 to 100, and `order` is by creation time, newest first unless it is `asc`.\n\nRows (a run's results, a dataset's rows) come as JSON lines, one object a line. The next page is in the `Link` header with `rel=\"next\"`; the last page has none.",
  },
  {
    title: "Events",
    text: "A run's events come as server-sent events with the fields `id`, `event` and `data`; `data` is JSON in the shape that `RunEvent` defines for the event. `run.progress` comes at most once a second, `rollout.finished` once per rollout, `run.paused` and `run.resumed` when dispatch stops and continues, and `run.completed`, `run.failed` or `run.cancelled` is the last. `snapshot` stands in for events older than the 10,000 that are kept.\n\nIds increase: `Last-Event-ID` (or `after`) resumes after that event, without gaps or repeats. An idle stream sends a comment every 15 s. It ends after the last event, or after 5 minutes with `retry: 1000`. When no more events will follow, the answer is 204.",
  },
  {
    title: "Errors",
    text: "Every unsuccessful reply has the body `Error`. `code` is one of a closed list; `param` is the path of the field at fault, or null. 429, 502, 503 and 504 are temporary: try again, after `retry-after` if it is given.",
  },
];
