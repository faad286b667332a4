/** The rules of every training plan, whatever happened: one function per rule, which returns what breaks it. */
import type { TrainingAccount } from "./play.ts";

export interface Violation {
  readonly rule: string;
  readonly detail: string;
}

type Rule = (account: TrainingAccount) => string[];

const RULES: Readonly<Record<string, Rule>> = {
  ended: ({ run, plan }) => {
    const trained = run.training?.steps_trained;
    return run.status === "completed" && trained === plan.max_steps
      ? []
      : [`${run.status} with ${trained} of ${plan.max_steps} steps trained`];
  },
  accounting: ({ run: { counts } }) => {
    const { planned, pending, dispatched, in_flight, scored, unscored, failed, cancelled } = counts;
    const ends = [unscored, failed, cancelled].flatMap((by) => Object.values(by));
    const ended = ends.reduce((sum, count) => sum + count, in_flight + scored);
    return planned === pending + dispatched && dispatched === ended ? [] : [JSON.stringify(counts)];
  },
  audit: ({ audit }) => [
    ...audit.violations.map(({ rule, detail }) => `${rule}: ${detail}`),
    ...(audit.sources.d1.current ? [] : ["D1 has not caught up"]),
  ],
  steps_in_order: ({ taken, lineage }) => {
    const steps = lineage.map((id) => taken.find((it) => it.manifest.batch_id === id)?.manifest.step);
    return steps.every((step, index) => step === index + 1) ? [] : [`trained steps ${steps}`];
  },
  trained_once: ({ lineage, plan }) => {
    return new Set(lineage).size === plan.max_steps && lineage.length === plan.max_steps
      ? []
      : [`${lineage} in the weights`];
  },
  batch_unchanged: ({ taken }) => {
    const known = new Map<string, string>();
    return taken.flatMap(({ manifest }) => {
      const text = JSON.stringify(manifest);
      const before = known.get(manifest.batch_id) ?? text;
      known.set(manifest.batch_id, text);
      return before === text ? [] : [`${manifest.batch_id} came as ${text}, before as ${before}`];
    });
  },
  group_once: (account) => {
    const objects = trainedManifests(account).flatMap((manifest) => manifest.objects);
    const digests = objects.map(({ sha256 }) => sha256);
    return digests.filter((digest, at) => digests.indexOf(digest) < at).map((digest) => `${digest} was trained twice`);
  },
  credited: ({ taken }) =>
    taken.flatMap(({ manifest, credits }) => {
      const known = new Set(credits.map((line) => line["sample_id"]));
      const advantages = credits.every((line) => Number.isFinite(line["advantage"]));
      return known.size === manifest.samples && credits.length === manifest.samples && advantages
        ? []
        : [`${manifest.batch_id} has ${manifest.samples} samples and ${credits.length} credits`];
    }),
  fresh: ({ taken, plan }) =>
    taken.flatMap(({ manifest }) => {
      const lag = manifest.train_version - manifest.min_policy_version;
      return lag <= plan.max_off_policy_steps ? [] : [`${manifest.batch_id} lags ${lag} versions`];
    }),
  // One more than the bound: the batch that is made at the moment the gate closes.
  lead: ({ taken, plan }) =>
    taken.flatMap(({ manifest, lead }) => {
      return (lead ?? 0) <= plan.lead + 1 ? [] : [`${lead} batches ahead at step ${manifest.step}`];
    }),
};

function trainedManifests({ taken, lineage }: TrainingAccount) {
  return lineage.flatMap((id) => {
    const found = taken.find(({ manifest }) => manifest.batch_id === id);
    return found === undefined ? [] : [found.manifest];
  });
}

export function trainingViolations(account: TrainingAccount): Violation[] {
  return Object.entries(RULES).flatMap(([rule, check]) => check(account).map((detail) => ({ rule, detail })));
}

export function trainingLine(account: TrainingAccount, violations: readonly Violation[]): string {
  const { plan, faults, results, recovery_ms, lineage } = account;
  const line = [
    `seed ${plan.seed}: ${violations.length === 0 ? "ok" : "FAILED"}`,
    `${plan.environment}, ${lineage.length} steps, ${results.length} rollouts`,
    `trainer died ${faults.crashes}, went back ${faults.rewinds}`,
    `kills ${faults.kills}, store failures ${faults.outages}, messages dropped ${faults.dropped}`,
    `recovery ${recovery_ms.join(", ") || "–"} ms`,
  ].join(" · ");
  return [line, ...violations.map(({ rule, detail }) => `  ${rule}: ${detail}`)].join("\n");
}
