/** Makes an organisation with a resource for every route, for one caller to fuzz, so that its ids exist. */
import type { Role } from "../../src/contract/identity.ts";
import type { TrainingRequestInput } from "../../src/contract/training-request.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { TrainerClient } from "../../src/sdk/trainer-client.ts";
import type { Known } from "./document.ts";

export const CALLERS = ["owner", "developer", "viewer", "operator", "trainer", "stranger", "nobody"] as const;
export type CallerName = (typeof CALLERS)[number];

export interface Platform {
  readonly url: string;
  /** May do everything, and create organisations. */
  readonly key: string;
  /** A model's endpoint. */
  readonly policyUrl: string;
}

export interface Target {
  /** The key of the caller's requests; null for requests without a key. */
  readonly key: string | null;
  readonly known: Known;
}

const RUN = { environment: "guess-number", model: "rollcall-policy", endpoint: "policy", sampling: { max_tokens: 4 } };
const TRAINING: TrainingRequestInput = {
  ...{ ...RUN, environment: "calculator", kind: "training", group_size: 2, batch_size: { rollouts: 4 }, max_steps: 50 },
  ...{ filters: { zero_variance: "keep" }, trainer: { encoding: "jsonl" } },
};
/** How many rollouts run at once: requests also start runs, and none of them should keep the machine busy. */
const AT_ONCE = 2;
const MADE = {
  ids: { endpoints: ["policy"], datasets: ["rows"], secrets: ["SECRET"], projects: ["default"] },
  spare: { endpoints: ["spare"], datasets: ["spare"], secrets: ["SPARE"], projects: ["spare"] },
};
const ENVIRONMENTS = ["gsm8k", "guess-number@1", "calculator"];

export async function prepare(platform: Platform, caller: CallerName): Promise<Target> {
  const { url: baseUrl, policyUrl } = platform;
  const operator = new RollcallClient({ baseUrl, apiKey: platform.key });
  const limits = { requests_per_minute: null, concurrent_rollouts: AT_ONCE, runs_in_flight: 200 };
  const own = await operator.organizations.create({ name: caller, limits });
  const beside = await operator.organizations.create({ name: `beside ${caller}` });
  const client = new RollcallClient({ baseUrl, apiKey: own.key.key ?? "" });
  for (const name of ["policy", "spare"]) await client.endpoints.create({ name, base_url: policyUrl });
  for (const name of ["rows", "spare"]) await client.datasets.upload([{ question: "1+1", answer: "2" }], { name });
  for (const name of ["SECRET", "SPARE"]) await client.secrets.create({ name, value: "hush" });
  for (const name of ["spare", "other"]) await client.projects.create({ name });
  const scoped = async (by: RollcallClient, scope: "admin" | "operator" | "runs:read", project: string | null = null) =>
    await by.keys.create({ name: scope, scopes: [scope], project });
  const spareKey = await scoped(client, "runs:read");
  const runs = await playRuns(client, baseUrl);
  const [invited, spare] = [await invite(client, "viewer", "spare"), await client.invitations.create(guest("later"))];
  const keyOf: Record<CallerName, () => Promise<string | null>> = {
    owner: async () => (await invite(client, "owner", "owner")).key,
    developer: async () => (await invite(client, "developer", "developer")).key,
    viewer: async () => (await invite(client, "viewer", "viewer")).key,
    operator: async () => (await scoped(operator, "operator")).key,
    trainer: async () => runs.token,
    stranger: async () => (await scoped(client, "admin", "other")).key,
    nobody: async () => null,
  };
  const { ended, training, members } = runs;
  return {
    key: await keyOf[caller](),
    known: {
      ids: { ...MADE.ids, ...runs.ids, keys: [own.key.id], people: [invited.person], organizations: [beside.id] },
      spare: {
        ...{ ...MADE.spare, ...runs.spare, keys: [spareKey.id], people: [invited.person] },
        ...{ organizations: [beside.id], invitations: [spare.id] },
      },
      members: {
        ...{ ...members, token: [...members.token, spare.token ?? ""], base_url: [policyUrl] },
        ...{ model: [RUN.model], environment: ENVIRONMENTS, endpoint: MADE.ids.endpoints, dataset: MADE.ids.datasets },
      },
      ...{ ended, training },
    },
  };
}

const guest = (name: string, role: Role = "viewer") => ({ email: `${name}@example.com`, role });

async function invite(
  client: RollcallClient,
  role: Role,
  name: string,
): Promise<{ key: string | null; person: string }> {
  const { token } = await client.invitations.create(guest(name, role));
  const { key, person } = await client.invitations.accept({ token: token ?? "", name });
  return { key: key.key, person: person.id };
}

/** Evals that have ended, and a training run with a leased batch. */
async function playRuns(client: RollcallClient, baseUrl: string) {
  const asked = ["eval", "spare"].map((name) => client.runs.create({ ...RUN, name, num_examples: 4 }));
  const evals = await Promise.all(asked);
  const [training, deleted] = [
    await client.runs.create(TRAINING),
    await client.runs.create({ ...RUN, num_examples: 1 }),
  ];
  const token = training.trainer?.token ?? "";
  const trainer = new TrainerClient({ baseUrl, runId: training.id, apiKey: token });
  const { epoch } = await trainer.register({ trainer_id: "t0", kind: "fuzz", protocol: "rl.batch/1" });
  const { leased } = await trainer.lease({ trainer_id: "t0", epoch, want_step: 1, max_wait_s: 60, ttl_s: 86_400 });
  if (leased === null) throw new Error("no batch came");
  const rollouts: string[] = [];
  for (const { id } of evals) {
    for await (const { event } of client.runs.events(id))
      if (event === "run.failed") throw new Error(`${id} has failed`);
    for await (const { rollout_id } of client.runs.results(id)) rollouts.push(rollout_id);
  }
  const [first = "", second = ""] = evals.map(({ id }) => id);
  const deletion = await client.runs.delete(deleted.id);
  const { lease, manifest } = leased;
  const sha256 = [manifest.sha256, ...manifest.objects.map((object) => object.sha256)];
  return {
    ...{ token, ended: first, training: training.id },
    ids: {
      ...{ runs: [first, training.id], rollouts, leases: [lease.id], deletions: [deletion.id] },
      ...{ environments: [RUN.environment] },
    },
    spare: { runs: [second], rollouts: rollouts.slice(4) },
    members: {
      ...{ sha256, step: ["1"], token: [lease.token], trainer_id: ["t0"], batch_id: [manifest.batch_id] },
      ...{ baseline: [second] },
    },
  };
}
