/**
 * What a run does beside moving forward: it tells D1 what has ended, in batches, and how it stands, and frees its rollouts
 * long after its own end. D1 is a projection; a row written twice stays as it was first written, so a drain that was cut
 * short is simply done again.
 */
import { LIMITS } from "../../contract/limits.ts";
import { insertRollouts, type NewRollout } from "../../db/rollouts.ts";
import { updateRun } from "../../db/runs.ts";
import type { LiveView, RolloutEntry } from "../contract/run-records.ts";
import type { RunSpec } from "../contract/wire.ts";
import { logError } from "../kit/log.ts";
import { rolloutHost } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { DRAIN_ROWS, drainAt, type RunClock } from "./alarm.ts";
import type { LiveViews } from "./report.ts";
import { metricsOf } from "./report-sums.ts";
import type { RunStore } from "./store.ts";

/** Storage of finished rollouts is freed this long after the run's end; a start is dropped long before. */
const FREE_AFTER_MS = 24 * 3600_000;
const FREE_AGAIN_MS = 3600_000;

type ChoreClock = Pick<RunClock, "now" | "undrained" | "lastDrainAt" | "drainFailures" | "rowStale" | "freeAt">;

export class RunChores {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #views: LiveViews;
  readonly #now: () => number;
  #lastDrainAt = 0;
  #drainFailures = 0;
  #freeAgainAt = 0;

  constructor(env: Env, store: RunStore, views: LiveViews, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#views = views;
    this.#now = now;
  }

  /** D1 is told at once of what changes now. */
  drainSoon(): void {
    this.#lastDrainAt = 0;
  }

  clock(): ChoreClock {
    const { finished, drained, row_current } = this.#store.head();
    return {
      now: this.#now(),
      undrained: finished - drained,
      lastDrainAt: this.#lastDrainAt,
      drainFailures: this.#drainFailures,
      rowStale: !row_current,
      freeAt: this.#freeAt(),
    };
  }

  async drain(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    for (let batches = 0; batches < LIMITS.sliceRows / DRAIN_ROWS; batches += 1) {
      const due = drainAt(this.clock());
      if (due === null || due > this.#now()) return;
      try {
        await drain(this.#env, this.#store, spec, () => this.#views.of(spec), subrequests);
        this.#drainFailures = 0;
      } catch (thrown) {
        this.#drainFailures += 1;
        logError("drain", spec.run_id, thrown);
      }
      this.#lastDrainAt = this.#now();
    }
  }

  async free(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    const freeAt = this.#freeAt();
    if (freeAt === null || freeAt > this.#now()) return;
    // Set first: whatever goes wrong below is tried again in an hour, not at once.
    this.#freeAgainAt = this.#now() + FREE_AGAIN_MS;
    if (await freeSlice(this.#env, this.#store, spec, subrequests)) this.#freeAgainAt = 0;
  }

  #freeAt(): number | null {
    const { settled_at, freed, hosts } = this.#store.head();
    if (settled_at === null || freed === hosts) return null;
    return Math.max(settled_at + FREE_AFTER_MS, this.#freeAgainAt);
  }
}

/** Frees the next objects. False: a report of one of them is still to be acknowledged, and the slice is to be tried again. */
async function freeSlice(env: Env, store: RunStore, spec: RunSpec, subrequests: Subrequests): Promise<boolean> {
  const { freed, hosts } = store.head();
  const count = Math.min(LIMITS.sliceObjects, hosts - freed);
  const next = Array.from({ length: count }, (_, index) => freed + 1 + index);
  const done = await subrequests.objectAll(next, (host) => rolloutHost(env, spec.scope, spec.run_id, host).free());
  if (done.includes(false)) return false;
  store.saveHead({ ...store.head(), freed: freed + count });
  return true;
}

/** One batch of rollouts, then the run's row when nothing is left. */
export async function drain(
  env: Env,
  store: RunStore,
  spec: RunSpec,
  view: () => LiveView,
  subrequests: Subrequests,
): Promise<void> {
  const rows = store.undrained(DRAIN_ROWS);
  if (rows.length > 0) {
    const records = rows.map((row) => recordOf(spec, row));
    await subrequests.fetch(() => insertRollouts(env.DB, spec.scope, records));
    store.transaction(() => {
      const written = store.setDrained(rows);
      const head = store.head();
      store.saveHead({ ...head, drained: head.drained + written });
    });
  }
  if (store.head().row_current) return;
  const { status, error, counts, report, dead_letters, settled_at } = view();
  const written = store.head();
  const changes = { status, error, counts, report, dead_letters, finished_at: settled_at };
  await subrequests.fetch(() => updateRun(env.DB, spec.scope, spec.run_id, changes));
  // Only now, and only if nothing changed meanwhile: a kill in between must leave the row to be written again.
  if (store.head() === written) store.saveHead({ ...written, row_current: true });
}

function recordOf(spec: RunSpec, row: RolloutEntry): NewRollout {
  return {
    id: row.id,
    run_id: spec.run_id,
    group_index: row.group_index,
    slot: row.slot,
    attempt: row.attempt,
    example_id: row.example_id ?? row.group_index,
    task_key: row.task_key ?? "",
    outcome: row.outcome ?? "failed",
    reason: row.reason,
    reward: row.reward,
    metrics: metricsOf(row),
    stop_condition: row.stop_condition,
    is_truncated: row.is_truncated === 1,
    turns: row.turns,
    calls: row.calls,
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    judge_calls: row.judge_calls,
    judge_prompt_tokens: row.judge_prompt_tokens,
    judge_completion_tokens: row.judge_completion_tokens,
    judge_micros: row.judge_micros,
    digest: row.digest,
    superseded_by: row.superseded_by,
    started_at: row.started_at,
    ended_at: row.ended_at ?? 0,
  };
}
