/**
 * Edits to the kernel at points where a kill, a repeated, lost or late message, or another caller's turn may interfere:
 * a repeat that is handled twice, two writes (or a write and a call) in the wrong order, a fence that is not compared,
 * a message that is not sent again, a sum that counts something twice.
 */
import { type Edit, editsOf } from "./edit.ts";

const TRAINER: readonly Edit[] = [
  ...editsOf(
    "src/kernel/trainer/batch-state.ts",
    ["kernel/trainer/batch-state.node"],
    [
      ["return epoch === current ? null", "return epoch <= current ? null"],
      ["generation === state.generation && step", "generation === generation && step"],
      ["taken_up.has(step)) return false;", "taken_up.has(-step)) return false;"],
      ["&& step > state.acked_step;", "&& step > 0;"],
      ["attempts >= target.max_attempts", "attempts > target.max_attempts"],
      ["const serial = state.serials + 1;", "const serial = state.serials + 0;"],
      ["if (batch !== null && state.lease !== null) {", "if (batch === null && state.lease !== null) {"],
      ["serial === serial || ended ? next : null;", "serial === serial || next ? next : null;"],
      ["if (batch.ack !== null) {", "if (batch.ack === null) {"],
      ["if (batch.sha256 !== asked.sha256) {", "if (batch.sha256 !== batch.sha256) {"],
      ["acked_step: step, lease: null", "acked_step: step, lease: state.lease"],
      ["state.lease === null && next?.fault", "state.lease === null || next?.fault"],
      ["if (offer?.serial !== serial || state.lease", "if (offer?.serial !== serial && state.lease"],
      ['reason !== "shutdown";', 'reason === "shutdown";'],
    ],
  ),
  ...editsOf(
    "src/kernel/trainer/offers.ts",
    ["kernel/trainer/offers.node"],
    [
      ["const offer: Offer = state.offer ?? {", "const offer: Offer = null ?? {"],
      ["const serials = Math.max(", "const serials = Math.min("],
      [
        "if (batch === null || !(stands || late)) return state;",
        "if (batch === null || !(stands && late)) return state;",
      ],
      ["const attempts = batch.attempts + 1;", "const attempts = batch.attempts + 0;"],
    ],
  ),
  ...editsOf(
    "src/kernel/trainer/weight-versions.ts",
    ["kernel/trainer/batch-state.node"],
    [
      ["if (told) return grant(state, false);", "if (!told) return grant(state, false);"],
      ["version < served && served <= published", "version < 0 && served <= published"],
      ['asked.state === "published" && version < published', 'asked.state === "published" && version < 0'],
    ],
  ),
  ...editsOf(
    "src/kernel/trainer/registration.ts",
    ["kernel/trainer/batch-state.node"],
    [
      ["epoch: back.epoch + 1,", "epoch: back.epoch + 0,"],
      ["if (batch.step <= acked_step) return", "if (batch.step < acked_step) return"],
      ['batch.step > held && batch.state === "acked"', 'batch.step >= held && batch.state === "acked"'],
      ["generation: state.generation + 1,", "generation: state.generation + 0,"],
    ],
  ),
  ...editsOf(
    "src/kernel/trainer/object.ts",
    ["kernel/trainer/object"],
    [
      ["const notifyAt = state.seq > this.#notifiedSeq ?", "const notifyAt = state.seq < this.#notifiedSeq ?"],
      [
        "this.#store.save(state, this.now());\n    await this.#arm(spec);",
        "await this.#arm(spec);\n    this.#store.save(state, this.now());",
      ],
    ],
  ),
  ...editsOf(
    "src/kernel/trainer/store.ts",
    ["kernel/trainer/routes", "kernel/trainer/served-weights"],
    [
      [
        "where epoch = ? and version = ? and state = ? and replica = ?",
        "where epoch = ? and version = ? and state = ? or replica = ?",
      ],
      ["'$.state', 'void') where step > ?\"", "'$.state', 'void') where step < ?\""],
    ],
  ),
];

const ENDPOINT: readonly Edit[] = [
  ...editsOf(
    "src/kernel/kit/fair-quotas.ts",
    ["kernel/endpoint/leases.node", "kernel/account/leases.node"],
    [
      ["sum + Math.max(running, quota), 0)", "sum + Math.min(running, quota), 0)"],
      ["const spare = freeOf(holdings, limit) > 0;", "const spare = freeOf(holdings, limit) > 1;"],
    ],
  ),
  ...editsOf(
    "src/kernel/account/lease-state.ts",
    ["kernel/account/leases.node"],
    [
      [
        "const quota = Math.min(fairQuota, freeOf(held, limit));",
        "const quota = Math.max(fairQuota, freeOf(held, limit));",
      ],
      ["filter(([, { lease_until }]) => lease_until > now)", "filter(([, { lease_until }]) => lease_until > 0)"],
      ["(held[pool].shared ? [] : [id])", "(held[pool].shared ? [id] : [])"],
      ["if (more !== undefined) usual.push(more);", "if (more === undefined) usual.push(more);"],
    ],
  ),
  ...editsOf(
    "src/kernel/endpoint/lease-state.ts",
    ["kernel/endpoint/leases.node"],
    [
      ["if (lease_until <= now) expired.push(run_id);", "if (lease_until <= 0) expired.push(run_id);"],
      ["told_at === null ? now : told_at + NOTIFY_AGAIN_MS;", "told_at === null ? now : now + NOTIFY_AGAIN_MS;"],
      [
        "const quota = Math.min(shares.places(limit).get(run_id) ?? 0,",
        "const quota = Math.max(shares.places(limit).get(run_id) ?? 0,",
      ],
    ],
  ),
  ...editsOf(
    "src/kernel/endpoint/lease-runs.ts",
    ["kernel/endpoint/lease-runs.node"],
    [
      ["before.wants === wants && before.more === more", "before.wants === wants"],
      ["sums.held + sign * Math.max(running, quota)", "sums.held + Math.max(running, quota)"],
      ["if (this.#places?.limit !== limit) {", "if (this.#places === undefined) {"],
    ],
  ),
  ...editsOf(
    "src/kernel/endpoint/store.ts",
    ["kernel/endpoint/store"],
    [
      [
        "if (kept.state.runs.get(run_id) === undefined) kv.delete",
        "if (kept.state.runs.get(run_id) !== undefined) kv.delete",
      ],
      ["this.#loadOlder() ?? this.#loadRows();", "this.#loadRows() ?? this.#loadOlder();"],
    ],
  ),
  ...editsOf(
    "src/kernel/endpoint/run-lease.ts",
    ["kernel/endpoint/leases.node"],
    [
      ["lost.streak + outcomes.streak : outcomes.streak;", "outcomes.streak + outcomes.streak : outcomes.streak;"],
      ["callsEach(lease) - report.calls", "callsEach(lease) + report.calls"],
      [
        "if (grantedLease === null || grantedLease.lease_until <= now) return 0;",
        "if (grantedLease === null || grantedLease.lease_until <= 0) return 0;",
      ],
    ],
  ),
];

const RUN: readonly Edit[] = [
  ...editsOf(
    "src/kernel/run/shards.ts",
    ["kernel/run/shards.node"],
    [
      ["if (shard !== null) this.#change(shard, -1);", "if (shard !== null) this.#change(shard, 1);"],
      ["if (by === 1) occupation.left -= 1;", "if (by === 1) occupation.left -= 0;"],
      [
        "if (shard === null || occupation === undefined) return;",
        "if (shard === null || occupation !== undefined) return;",
      ],
      ["if (occupation.left > 0) this.#playing", "if (occupation.left >= 0) this.#playing"],
    ],
  ),
  ...editsOf(
    "src/kernel/run/rows-in-flight.ts",
    ["kernel/run/rows-in-flight"],
    [["const changed = { ...known, ...columns };", "const changed = { ...columns, ...known };"]],
  ),
  ...editsOf(
    "src/kernel/run/accounting.ts",
    ["kernel/run/said-twice"],
    [
      ['if (row.status !== "running") {', "if (row.status !== row.status) {"],
      ['row === null || row.status !== "scoring") return;', "row === null || row.status !== row.status) return;"],
      ["current.status !== from) return null;", "current.status !== current.status) return null;"],
      [
        "head.settled_at !== null || head.stop !== null) return;",
        "head.settled_at !== null || head.stop !== head.stop) return;",
      ],
      ["entry === null || entry.key !== null) return;", "entry === null || entry.key !== entry.key) return;"],
      ["head.unsegmented_bytes - bytes;", "head.unsegmented_bytes + bytes;"],
      ["running: head.running - 1,\n      gate", "running: head.running - 2,\n      gate"],
    ],
  ),
  ...editsOf(
    "src/kernel/run/standing.ts",
    ["kernel/run/interleavings"],
    [["head.retries_dispatched === 0 ? head.scored", "head.retries_dispatched >= 0 ? head.scored"]],
  ),
  ...editsOf(
    "src/kernel/run/report-sums.ts",
    ["kernel/run/retry", "kernel/run/recomputed-figures"],
    [
      [
        "if (row.superseded_by === null) this.#count(row);",
        "if (row.superseded_by === row.superseded_by) this.#count(row);",
      ],
    ],
  ),
  ...editsOf(
    "src/kernel/run/take-scores.ts",
    ["kernel/run/refused-reports"],
    [["if (refused === null) continue;", "if (refused !== null) continue;"]],
  ),
  ...editsOf(
    "src/kernel/trajectory/store.ts",
    ["kernel/run/delivery"],
    [["digest === null || text !== null ? [] :", "digest === null || text === null ? [] :"]],
  ),
  ...editsOf(
    "src/kernel/trajectory/carry-over.ts",
    ["kernel/service/rescore"],
    [
      [
        "rollout_id, rescored_from, usage: NO_USAGE, calls: 0 };",
        "rollout_id, rescored_from, usage: trajectory.usage, calls: 0 };",
      ],
      ["if (!moved || look === LOOKS) return sources;", "if (moved || look === LOOKS) return sources;"],
    ],
  ),
  ...editsOf(
    "src/kernel/scoring/consume-scores.ts",
    ["kernel/run/delivery", "kernel/scoring/group-samples"],
    [["if (failures.length > 0) throw failures[0];", "if (failures.length > 999) throw failures[0];"]],
  ),
  ...editsOf(
    "src/kernel/service/consume.ts",
    ["kernel/run/delivery"],
    [
      ["await handle(message);\n      message.ack();", "message.ack();\n      await handle(message);"],
      [
        "for (const [queue, of] of byQueue) await sendAll(queue, of, subrequests, restOf);\n  for (const message of untried) message.ack();",
        "for (const message of untried) message.ack();\n  for (const [queue, of] of byQueue) await sendAll(queue, of, subrequests, restOf);",
      ],
      ["subrequests.count > SUBREQUESTS_BEFORE_LAST ||", "subrequests.count > Infinity ||"],
    ],
  ),
  ...editsOf(
    "src/kernel/dataset/upload.ts",
    ["kernel/dataset/upload"],
    [
      ["if (!isSameRequest(made.request_hash,", "if (isSameRequest(made.request_hash,"],
      ["return idempotencyKey === null ? null : await recall", "return idempotencyKey !== null ? null : await recall"],
      ['if (inserted === "inserted") return null;', "if (inserted === inserted) return null;"],
    ],
  ),
  ...editsOf(
    "src/kernel/kit/file-upload.ts",
    ["kernel/dataset/upload"],
    [
      [
        "if (multipart !== null) await this.#subrequests.fetch(() => multipart.abort());",
        "if (multipart === null) await this.#subrequests.fetch(() => multipart.abort());",
      ],
    ],
  ),
];

const JUDGING: readonly Edit[] = [
  ...editsOf(
    "src/kernel/run/judging/scoring-group-state.ts",
    ["kernel/run/judging/faults"],
    [
      ["taker === by.id && attempt < by.attempt;", "taker === by.id && attempt <= by.attempt;"],
      ["        return [entry];", "        return [];"],
      ["if (losses < MOST_LOSSES) store", "if (losses <= Infinity) store"],
    ],
  ),
  ...editsOf(
    "src/kernel/run/judging/judgement.ts",
    ["kernel/run/judging/faults"],
    [["calls: before.calls + (asked ? 1 : 0),", "calls: before.calls + (asked ? 2 : 0),"]],
  ),
  ...editsOf(
    "src/kernel/run/judging/scoring-group-state.ts",
    ["kernel/run/interleavings"],
    [["Math.max(entry.claim + 1, now);", "Math.max(entry.claim + 1, 0);"]],
  ),
  ...editsOf(
    "src/kernel/run/judging/charge.ts",
    ["kernel/run/said-twice"],
    [["seq !== row.seq && status", "seq === row.seq && status"]],
  ),
  ...editsOf(
    "src/kernel/run/judging-store.ts",
    ["kernel/run/interleavings", "kernel/run/judging/faults"],
    [["losses = losses - (stage = 'claimed')", "losses = losses + (stage = 'claimed')"]],
  ),
  ...editsOf(
    "src/kernel/scoring/consume-judgements.ts",
    ["kernel/run/judging/faults", "kernel/run/judging/told-again"],
    [
      ["recorded.replies}`;", "recorded.calls}`;"],
      [": { failed: true };", ": { failed: false };"],
      ["judgedAsk(ask, { ...outcome, recorded })", "judgedAsk(ask, { ...outcome })"],
    ],
  ),
];

const TRAINING: readonly Edit[] = [
  ...editsOf(
    "src/kernel/run/training/groups.ts",
    ["kernel/run/training/said-twice", "kernel/run/training/steps"],
    [
      [
        "group === null || group.position !== null) return;",
        "group === null || group.position !== group.position) return;",
      ],
      ["groups_open: training.groups_open - 1,", "groups_open: training.groups_open - 0,"],
      ["if (ended < size) return;", "if (ended > size) return;"],
    ],
  ),
  ...editsOf(
    "src/kernel/run/training/batches.ts",
    ["kernel/run/training/steps"],
    [
      ["buffered: withGroup(training.buffered, group, -1),", "buffered: withGroup(training.buffered, group, 1),"],
      [
        "const buffered = withGroup(training.buffered, group, -1);",
        "const buffered = withGroup(training.buffered, group, 1);",
      ],
      ["training: { ...training, step: step + 1, empty: 0,", "training: { ...training, step: step + 0, empty: 0,"],
    ],
  ),
  ...editsOf(
    "src/kernel/run/training/news.ts",
    ["kernel/run/training/said-twice", "kernel/run/training/steps"],
    [
      ["snapshot.generation > before.generation;", "snapshot.generation >= before.generation;"],
      ["if (newest > version) dropBuffered(", "if (newest >= version) dropBuffered("],
      ["const shipped = training.shipped - 1;", "const shipped = training.shipped - 0;"],
    ],
  ),
  ...editsOf(
    "src/kernel/run/training/loop.ts",
    ["kernel/run/training/run"],
    [
      [
        "await this.#write(spec, training, subrequests);\n    await this.#tell(spec, subrequests);",
        "await this.#tell(spec, subrequests);\n    await this.#write(spec, training, subrequests);",
      ],
      ['?.state !== "building") return;', '?.state !== "void") return;'],
      [
        "announced.paused !== paused || announced.ended !== ended",
        "announced.paused !== paused && announced.ended !== ended",
      ],
    ],
  ),
  ...editsOf(
    "src/kernel/run/training/loop.ts",
    ["kernel/run/training/waits"],
    [['training.batchesIn("built").length > 0 ||', 'training.batchesIn("built").length < 0 ||']],
  ),
  ...editsOf(
    "src/kernel/run/training/evals.ts",
    ["kernel/run/training/waits"],
    [
      ["return step > evaluatedStep(training, place) &&", "return step >= evaluatedStep(training, place) &&"],
      ["{generation}/", "{step}/"],
      ["{place}`", "{step}`"],
    ],
  ),
  ...editsOf(
    "src/kernel/run/training/stale.ts",
    ["kernel/run/training/steps"],
    [
      ["const groups_open = training.groups_open - 1;", "const groups_open = training.groups_open - 2;"],
      [
        "const last = group_index === training.groups_opened - 1;",
        "const last = group_index !== training.groups_opened - 1;",
      ],
    ],
  ),
];

export const CUT_POINT_EDITS: readonly Edit[] = [...TRAINER, ...ENDPOINT, ...RUN, ...JUDGING, ...TRAINING];
