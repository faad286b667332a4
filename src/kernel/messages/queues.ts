/** The queues, by the names of their bindings. Cloudflare itself sends to those of dead letters. */
type QueueBinding = { [Name in keyof Env]-?: Env[Name] extends Queue ? Name : never }[keyof Env];

/** By binding, so that none is missing: the name in this release's wrangler.toml. */
const NAMES: Readonly<Record<QueueBinding, string>> = {
  ROLLOUT_GROUPS: "rollout-groups",
  ROLLOUT_GROUPS_1: "rollout-groups-1",
  ROLLOUT_GROUPS_2: "rollout-groups-2",
  ROLLOUT_GROUPS_3: "rollout-groups-3",
  ROLLOUT_SCORES: "rollout-scores",
  ROLLOUT_SCORES_1: "rollout-scores-1",
  ROLLOUT_SCORES_2: "rollout-scores-2",
  ROLLOUT_SCORES_3: "rollout-scores-3",
  ROLLOUT_SCORES_HEAVY: "rollout-scores-heavy",
  ROLLOUT_JUDGEMENTS: "rollout-judgements",
  ROLLOUT_JUDGEMENTS_1: "rollout-judgements-1",
  ROLLOUT_JUDGEMENTS_2: "rollout-judgements-2",
  ROLLOUT_JUDGEMENTS_3: "rollout-judgements-3",
  ROLLOUT_JUDGEMENTS_SLOW: "rollout-judgements-slow",
  ROLLOUT_JUDGEMENTS_SLOW_1: "rollout-judgements-slow-1",
  ROLLOUT_JUDGEMENTS_SLOW_2: "rollout-judgements-slow-2",
  ROLLOUT_JUDGEMENTS_SLOW_3: "rollout-judgements-slow-3",
  ROLLOUT_JUDGEMENTS_SILENT: "rollout-judgements-silent",
  RUN_SEGMENTS: "run-segments",
  ROLLOUT_GROUPS_DEAD: "rollout-groups-dead",
  ROLLOUT_SCORES_DEAD: "rollout-scores-dead",
  ROLLOUT_JUDGEMENTS_DEAD: "rollout-judgements-dead",
  RUN_SEGMENTS_DEAD: "run-segments-dead",
};

export const QUEUES = Object.entries(NAMES).map(([binding, queue]) => ({ binding: binding as QueueBinding, queue }));

/** Those to which the Worker sends. */
export const WORK_QUEUES = QUEUES.filter(({ queue }) => !queue.endsWith("-dead"));
