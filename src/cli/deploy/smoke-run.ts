/**
 * Plays a few rollouts on a deployment through its public API. The model is in the deployment's own Worker, at its public
 * address (src/operator), so no other server and no key is needed. A good smoke run went through objects, outgoing calls,
 * three queues, D1, R2, scores and charges; judges and fleets are not tried.
 *
 * Invariants. The run is in a project of its own, which is deleted after a good run. After a bad one it stays for
 * inspection until the next smoke run, which deletes it first, as it does with what an interrupted command left.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { RunAudit } from "../../contract/audit.ts";
import type { RolloutSummary } from "../../contract/rollout-list.ts";
import type { CreatedRun, RunRequestInput, RunView } from "../../contract/run.ts";
import { queueOfShard, shardOf } from "../../core/run-queues.ts";
import type { Finding } from "../../local/check-deployment.ts";
import { SMOKE_ANSWER, SMOKE_MODEL_PATH } from "../../operator/wire.ts";
import { ApiRequestError, type ProjectView, RollcallClient } from "../../sdk/client.ts";
import { followRun } from "../follow.ts";

export interface SmokeAsked {
  readonly url: string;
  readonly key: string;
  /** The names of the deployment's Worker, and the beginning of those of its queues. */
  readonly worker: string;
  readonly queue_prefix: string;
  /** Aborted when the run has taken too long. */
  readonly late: AbortSignal;
}

export interface SmokeRun {
  readonly outcome: "good" | "bad" | "skipped";
  /** Why it is bad or was skipped. */
  readonly findings: readonly Finding[];
}

/** Project that has nothing but the smoke run. */
const PROJECT = "deploy-smoke";
/** Longer than a trajectory that is sent with a report, so it goes through R2 and the queue of scores. */
const LONG_TASK = "This row is long. ".repeat(2500);
const TASKS = ["Are you there?", LONG_TASK];
const TRIES = 2;
const ROLLOUTS = TASKS.length * TRIES;
const LOOK_AGAIN_MS = 1000;
const UNAUTHORIZED = 401;
const PAYMENT_REQUIRED = 402;
const FORBIDDEN = 403;
const NOT_FOUND = 404;
const TOO_MANY = 429;
/** Refusals that say something about the organisation of the key, and nothing about the deployment. */
const OF_ORGANIZATION = [UNAUTHORIZED, PAYMENT_REQUIRED, FORBIDDEN, TOO_MANY];
const RUN = "smoke run of rollcall deploy";

/** What is wrong, and what to do about it. */
class SmokeFailed extends Error {
  readonly fix: string;

  constructor(what: string, fix: string) {
    super(what);
    this.fix = fix;
  }
}

/** Never throws because of an answer of the deployment; throws the reason of `signal`. */
export async function playSmokeRun(
  asked: SmokeAsked,
  { signal, log }: { readonly signal: AbortSignal; readonly log: (line: string) => void },
): Promise<SmokeRun> {
  const organization = new RollcallClient({ baseUrl: asked.url, apiKey: asked.key });
  log(`playing a smoke run of ${ROLLOUTS} rollouts`);
  try {
    const within = (project: string) => new RollcallClient({ baseUrl: asked.url, apiKey: asked.key, project });
    const earlier = await findProject(organization, signal);
    if (earlier !== null) {
      if (!(await hasOnlySmokeRuns(within(earlier.id), signal))) {
        return skipped(`the project ${PROJECT} has other runs, and would be deleted`, `rename it, or use --no-smoke`);
      }
      // The name can be used again at once; the data is deleted later.
      await organization.projects.delete(earlier.id, { signal });
    }
    const { id: project } = await organization.projects.create({ name: PROJECT }, { signal });
    await playIn(within(project), asked, signal);
    await organization.projects.delete(project, { signal });
    return { outcome: "good", findings: [] };
  } catch (thrown) {
    signal.throwIfAborted();
    return outcomeOf(thrown);
  }
}

function outcomeOf(thrown: unknown): SmokeRun {
  if (thrown instanceof SmokeFailed) return bad(thrown.message, thrown.fix);
  if (thrown instanceof ApiRequestError && OF_ORGANIZATION.includes(thrown.status)) {
    const fix = "log in with a key that has the scope admin, of an organisation that may start runs, or use --no-smoke";
    return skipped(`the key of the profile may not play it (${thrown.message})`, fix);
  }
  if (thrown instanceof ApiRequestError || thrown instanceof TypeError || thrown instanceof DOMException) {
    return bad(`the smoke run could not be played: ${thrown.message}`, "repeat the command, or use --no-smoke");
  }
  throw thrown;
}

function skipped(why: string, fix: string): SmokeRun {
  return { outcome: "skipped", findings: [{ level: "warning", what: `no smoke run was played: ${why}`, fix }] };
}

function bad(what: string, fix: string): SmokeRun {
  return { outcome: "bad", findings: [{ level: "error", what, fix }] };
}

async function findProject({ projects }: RollcallClient, signal: AbortSignal): Promise<ProjectView | null> {
  try {
    return await projects.get(PROJECT, { signal });
  } catch (thrown) {
    if (thrown instanceof ApiRequestError && thrown.status === NOT_FOUND) return null;
    throw thrown;
  }
}

async function hasOnlySmokeRuns({ runs }: RollcallClient, signal: AbortSignal): Promise<boolean> {
  for await (const { name } of runs.list({}, { signal })) if (name !== RUN) return false;
  return true;
}

async function playIn(client: RollcallClient, asked: SmokeAsked, signal: AbortSignal): Promise<void> {
  const run = await client.runs.create(requestFor(asked.url), { signal });
  try {
    const until = AbortSignal.any([signal, asked.late]);
    const ended = await followRun(client, run.id, { signal: until, onProgress: () => undefined });
    if (ended.counts.scored !== ROLLOUTS) throw await badEnd(client, ended, asked);
    await waitUntilStored(client, ended, until);
    await checkCharges(client, ended, signal);
  } catch (thrown) {
    if (signal.aborted || !asked.late.aborted) throw thrown;
    throw await tooLate(client, run, asked);
  }
}

function requestFor(url: string): RunRequestInput {
  return {
    name: RUN,
    environment: "graded-dataset",
    environment_args: {
      graders: [
        {
          ...{ type: "string_check", name: "answer", operation: "eq" },
          ...{ input: "{{sample.output_text}}", reference: "{{item.answer}}" },
        },
      ],
    },
    dataset: TASKS.map((question) => ({ question, answer: SMOKE_ANSWER })),
    model: "smoke",
    endpoint: { base_url: new URL(SMOKE_MODEL_PATH, url).href },
    rollouts_per_example: TRIES,
    min_scored: 0,
  };
}

/** Waits until the trajectories are compacted into R2, and the run's records agree. */
async function waitUntilStored(client: RollcallClient, run: RunView, until: AbortSignal): Promise<void> {
  for (;;) {
    const { holds, sources, violations } = await client.runs.audit(run.id, { signal: until });
    if (!holds) throw brokenRules(run, violations);
    if (sources.r2.rollouts === ROLLOUTS && sources.d1.current) return;
    await sleep(LOOK_AGAIN_MS, undefined, { signal: until });
  }
}

function brokenRules({ id }: RunView, violations: RunAudit["violations"]): SmokeFailed {
  const rules = violations.map(({ rule, detail }) => `${rule}: ${detail}`).join("; ");
  return new SmokeFailed(`the records of the smoke run ${id} differ: ${rules}`, "report this as a bug of Rollcall");
}

async function checkCharges(client: RollcallClient, { id }: RunView, signal: AbortSignal): Promise<void> {
  const { differences } = await client.runs.auditCharges(id, {}, { signal });
  if (differences.length === 0) return;
  const list = differences.map(({ rollout_id, what }) => `${rollout_id}: ${what}`).join("; ");
  throw new SmokeFailed(`the charges of the smoke run ${id} differ: ${list}`, "report this as a bug of Rollcall");
}

async function badEnd(client: RollcallClient, { id, status }: RunView, asked: SmokeAsked): Promise<SmokeFailed> {
  const { data } = await client.rollouts.list(id);
  const failed = data.filter(({ outcome }) => outcome !== "scored");
  const calls = failed.some(({ reason }) => reason === "provider" || reason === "timeout");
  const what = `the smoke run ${id} is ${status}: ${failed.map(failureText).join("; ")}`;
  const unreachable = `the Worker must reach its own address, ${asked.url}: is a proxy in front of it? Name an address without one with --url, or use --no-smoke`;
  return new SmokeFailed(what, calls ? unreachable : logOf(asked));
}

function failureText({ id, outcome, reason, error }: RolloutSummary): string {
  return `${id} ${outcome}: ${reason}${error === null ? "" : `: ${error.error}: ${error.message}`}`;
}

function logOf({ worker }: SmokeAsked): string {
  return `npx wrangler tail ${worker} shows the Worker's log; then repeat the command`;
}

/** Says what the run waits for. */
async function tooLate(client: RollcallClient, { id }: CreatedRun, asked: SmokeAsked): Promise<SmokeFailed> {
  const { status, status_reason, counts } = await client.runs.get(id);
  const { data } = await client.rollouts.list(id, { filter: "-status:done" });
  const rollouts = await Promise.all(data.map(({ id: rollout }) => client.rollouts.get(rollout)));
  const queued = rollouts.filter((rollout) => rollout.status === "queued");
  const scoring = rollouts.filter((rollout) => rollout.status === "scoring");
  const of = (some: readonly { readonly id: string }[]) =>
    `${some.length} of ${ROLLOUTS} rollouts (${some.map((rollout) => rollout.id).join(", ")})`;
  const slow = (what: string, fix: string) => new SmokeFailed(`the smoke run ${id} took too long: ${what}`, fix);
  if (queued.length > 0)
    return slow(
      `${of(queued)} were dispatched and not started`,
      queueFix(asked, queueOfShard("rollout-groups", shardOf(id))),
    );
  if (scoring.length > 0)
    return slow(`${of(scoring)} wait for scores`, queueFix(asked, queueOfShard("rollout-scores", shardOf(id))));
  if (counts.scored === ROLLOUTS) {
    return slow("its rollouts are scored, but not compacted in R2", queueFix(asked, "run-segments"));
  }
  const why = status_reason?.reason ?? status_reason?.state ?? status;
  return slow(`${counts.in_flight} rollouts in flight, ${counts.pending} pending: ${why}`, logOf(asked));
}

function queueFix({ queue_prefix, worker }: SmokeAsked, queue: string): string {
  const name = `${queue_prefix}${queue}`;
  return `npx wrangler queues info ${name} must show ${worker} as its consumer and no paused delivery; then repeat the command, or use --wait for longer`;
}
