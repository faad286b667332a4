/** What holds for every route, told once: the head of the OpenAPI document and of the reference page. */

export const NOUNS: Readonly<Record<string, string>> = {
  runs: "An eval: tasks × rollouts per task against one model.",
  rollouts: "One attempt at one task: its messages, turns, usage, errors and scores.",
  environments: "Dataset, turn logic and rubric: what a run may name.",
  datasets: "Task rows, uploaded once and named by any number of runs.",
  endpoints: "OpenAI-compatible servers that runs call, with their sealed keys.",
  triggers: "Addresses at which somebody else's webhook begins a run: its signature is checked, and it begins one run.",
  hooks: "Where senders of webhooks post: they need no key, and sign what they send.",
  fleets: "Engines that serve one policy, and how new weights get onto each of them.",
  secrets: "Values an environment may use by name. They go in and never come out.",
  "webhook-endpoints": "Addresses that are told of events, signed by Standard Webhooks, and what was delivered there.",
  leases: "Batches a trainer has in hand.",
  organization: "Your organisation: its name, its limits, the hosts it calls.",
  organizations: "Every organisation of the deployment, for its operators.",
  projects: "What runs, datasets, endpoints and secrets belong to. Nothing of one is seen from another.",
  keys: "What programs and people authenticate with: what each may do, how far it reaches, until when.",
  people: "Members of an organisation, and the role of each.",
  "sign-in-codes": "One-time codes by which a browser signs in to the web page.",
  session: "The session of the browser that asks.",
  sessions: "Browsers that are signed in to the web page.",
  "report-links": "Links by which anybody reads the report of a run, until they end or are taken back.",
  "shared-report": "Reports as whoever has a link reads them.",
  invitations: "Tokens by which people become members.",
  deletions: "What was taken away for good, or is being: jobs, and receipts of what they took.",
  whoami: "Who a key says you are.",
  bootstrap: "The first organisation of a deployment, and its first key.",
  prices: "What the platform asks for its work, by versions that never change.",
  balance: "What an organisation has.",
  ledger: "Everything that an organisation was charged and paid, entry by entry.",
  budgets: "What may be charged in a month: in all, for a project, for a key or a person.",
  "top-ups": "For operators: money that came in.",
  adjustments: "For operators: refunds, disputes and corrections.",
  checkouts: "Paying by card, where the deployment takes payments through Stripe.",
  stripe: "What Stripe tells of payments.",
  usage: "What was used, and what was charged for it.",
  statements: "What was charged and paid in a month, to the micro-dollar.",
  "audit-log": "Who changed what in an organisation.",
  reseal: "For operators, after `ROLLCALL_SECRET` was changed.",
  platform: "The platform itself. These routes need no key, but for `/metrics`.",
};

/** Paragraphs are set apart by an empty line; `code` stands in backticks. */
export const GUIDE: readonly { readonly title: string; readonly text: string }[] = [
  {
    title: "Conventions",
    text: "Rollouts and scoring for agent evals. Wire JSON is snake_case, times are integer seconds since the epoch, and a score that was not produced is null, never 0. Every reply has an `x-request-id`; send one of your own (1 to 128 of `A-Z a-z 0-9 _ . : -`) to have it echoed.",
  },
  {
    title: "Keys",
    text: "Every route under `/v1` takes `Authorization: Bearer <key>`. A key has scopes, and each route names those it needs; `x:write` includes `x:read`, and `admin` all but `operator` and `metrics`, which are about the deployment. A key is for one project, or for a whole organisation: then a request names its project in the header `Rollcall-Project`, by id or name, or means the one called `default`. A page of the platform itself asks by the cookie of a session, which may do what its key or person may. What belongs to another project is answered as if it did not exist.\n\nRequests are counted for each key that has a limit and for each organisation. Replies tell the tighter of the two in `x-ratelimit-limit-requests`, `x-ratelimit-remaining-requests` (so many more, unless others take them) and `x-ratelimit-reset-requests`; beyond it they are 429 with `retry-after`.",
  },
  {
    title: "Sending again",
    text: "Every POST takes an `Idempotency-Key` of 1 to 255 printable ASCII characters. The same key with the same body gives what the first request made, with `idempotent-replayed: true`, and makes nothing new; with another body it is 422. Keys hold within one project.",
  },
  {
    title: "Lists",
    text: "A list answers with `data`, `first_id`, `last_id` and `has_more`. Go on with `after=<last_id>`. `limit` is 1 to 100, and `order` is by time of creation, newest first unless you say `asc`.\n\nRows (a run's results, a dataset's rows) come as JSON lines, one object a line. The next page is in the `Link` header with `rel=\"next\"`; without one it was the last.",
  },
  {
    title: "Events",
    text: "A run's events come as server-sent events with the fields `id`, `event` and `data`; `data` is JSON of the shape that `RunEvent` has for the name. `run.progress` comes at most once a second, `rollout.finished` once per rollout, `run.paused` and `run.resumed` as dispatch stops and goes on, and `run.completed`, `run.failed` or `run.cancelled` is the last. `snapshot` stands in for events older than the 10,000 that are kept.\n\nIds only grow: `Last-Event-ID` (or `after`) goes on behind that event, with nothing missing and nothing twice. A quiet stream sends a comment every 15 s. It ends after the last event, or after 5 minutes with `retry: 1000`. Once nothing will ever follow the answer is 204.",
  },
  {
    title: "Errors",
    text: "Every reply that is no success has the body `Error`. `code` is one of a closed list, `param` the field at fault as a path, or null. 429, 502, 503 and 504 pass: ask again, after `retry-after` where that is given.",
  },
];
