/**
 * Which weights exist and which engines serve them, from the trainer's reports. Pure.
 *
 * Invariants. Within an epoch, published versions only grow, and so does the version that an engine serves: a late
 * report takes nothing back. No version is published or applied before its batch is acknowledged. If the answer to an
 * offer of the batch is still awaited, the report counts as the acknowledgement. The state of a version is derived from
 * what is published and what is served; only the reports are stored.
 */
import type { Acked, WeightsOut, WeightVersions } from "../../contract/trainer-wire.ts";
import { newestPossible, type ServedWeights } from "../../core/training/numbering.ts";
import type { TrainerRefusal, TrainerRpc } from "../messages/training-wire.ts";
import { acknowledge, fence, grant, type Outcome, refused } from "./batch-state.ts";
import { appliedOf, batchAt, NEW_TRAINER, noteNews, noteSeen, type TrainerState } from "./state.ts";

/** For a run whose trainer has not reported yet: everything is sampled with version 0. */
export const FIRST_SERVED: ServedWeights = servedNow(NEW_TRAINER, 0);

export type Report = Parameters<TrainerRpc["report"]>[0];

/** The reports about a version. `generation`: the number of resets of the run before them. */
export interface WeightRow {
  readonly id: string;
  readonly generation: number;
  readonly version: number;
  readonly failed: number;
  readonly label: string | null;
  readonly location: string | null;
  readonly sha256: string | null;
  /** When it was last reported. */
  readonly at: number;
}

/** The engine of a report that names none: there is only one. */
const ONLY_REPLICA = "policy";

/**
 * `told`: this very report was taken before, in this epoch. Answers true if the report has something new. `onFleet`:
 * only the run's fleet reports which replica serves what.
 */
export function report(
  before: TrainerState,
  asked: Report,
  { told, onFleet = false }: { readonly told: boolean; readonly onFleet?: boolean },
  now: number,
): Outcome<boolean> {
  if (asked.of_fleet !== undefined) return reportOfFleet(before, asked, asked.of_fleet.generation);
  const fenced = fence(before, asked.epoch);
  if (fenced !== null) return refused(before, fenced);
  const state = noteSeen(before, now);
  if (told) return grant(state, false);
  const trained = asAnswered(state, asked, now);
  const refusal = refuseReport(trained, asked) ?? (onFleet ? refuseUnnamed(asked) : null);
  if (refusal !== null) return refused(state, refusal);
  const served = onFleet && asked.state === "applied";
  return grant(served ? trained : after(trained, asked), true);
}

/**
 * A report of the fleet: it does not count as the trainer's presence, and a registration does not fence it off. Weights
 * that were taken back are not served.
 */
function reportOfFleet(state: TrainerState, asked: Report, generation: number): Outcome<boolean> {
  if (generation !== state.generation) {
    return refused(state, conflict(`generation ${generation} was voided: the current one is ${state.generation}`));
  }
  if (asked.version > state.published) return refused(state, conflict(`version ${asked.version} is not published`));
  const { state: said, rotation } = asked;
  const name = replicaOf(asked);
  const served = said === "applied" ? { ...state.replicas, [name]: asked.version } : state.replicas;
  const stays = (replica: string) => rotation?.includes(replica) ?? (said !== "failed" || replica !== name);
  const replicas = Object.fromEntries(Object.entries(served).filter(([replica]) => stays(replica)));
  const unheard = (state.unheard ?? []).filter((replica) => stays(replica) && (said !== "applied" || replica !== name));
  return grant(noteNews({ ...state, replicas, unheard }), true);
}

function refuseUnnamed({ state, replica }: Report): TrainerRefusal | null {
  if (state !== "applied" || replica !== undefined) return null;
  return {
    code: "conflict",
    message: "a fleet has several engines: set replica to the one that applied it",
    param: "replica",
  };
}

/** The report about a step's version that an acknowledgement with `published` contains. */
export function reportWithAck(step: number, epoch: number, published: WeightsOut): Report {
  return { version: step, state: "published", epoch, ...published };
}

/**
 * An acknowledgement that also publishes its weights: both are accepted, or neither is. `reported`: the outcome of the
 * report in the state after `acked`.
 */
export function acknowledgeAndPublish(
  before: TrainerState,
  acked: Outcome<Acked>,
  reported: Outcome<boolean>,
): Outcome<Acked> {
  if (!acked.answer.ok) return acked;
  if (!reported.answer.ok) return refused(before, reported.answer.refusal);
  const { value: reply } = acked.answer;
  return grant(reported.state, { ...reply, published: Math.max(reply.published, reply.step) });
}

/**
 * A trainer that gets offers may acknowledge by its answer to the offer, and its report of the weights may arrive
 * before that answer. Then the report counts as the acknowledgement. A trainer that acknowledges by a call has made it
 * before.
 */
function asAnswered(state: TrainerState, asked: Report, now: number): TrainerState {
  const { lease, offer } = state;
  const awaited = lease?.by === "push" && lease.answered !== true ? lease : offer;
  if (!isOut(asked) || awaited?.step !== asked.version) return state;
  const batch = batchAt(state, awaited.step);
  if (batch === null) return state;
  return acknowledge(state, batch, { metrics: {}, lease: awaited.serial }, now);
}

function isOut(asked: Report): boolean {
  return asked.state === "published" || asked.state === "applied";
}

function after(state: TrainerState, asked: Report): TrainerState {
  const { version } = asked;
  switch (asked.state) {
    case "published": {
      const batches = state.batches.filter(({ step, state }) => state !== "acked" || step >= version);
      return noteNews({
        ...state,
        published: version,
        batches,
        ...notifyAgain(state, asked),
      });
    }
    case "applied": {
      const replica = replicaOf(asked);
      const replicas = { ...state.replicas, [replica]: version };
      const unheard = (state.unheard ?? []).filter((other) => other !== replica);
      return noteNews({ ...state, replicas, unheard });
    }
    case "pending":
    case "failed":
      return state;
  }
}

/** A location of version 0 may be reported after the fleet got its order: then the order is sent again. */
function notifyAgain({ fleet }: TrainerState, { location }: Report): Pick<TrainerState, "fleet"> {
  return fleet == null || location === undefined ? {} : { fleet: { ...fleet, told: null } };
}

function refuseReport(state: TrainerState, asked: Report): TrainerRefusal | null {
  const { version } = asked;
  const { published, acked_step } = state;
  if (version > (isOut(asked) ? acked_step : acked_step + 1)) {
    const next_step = acked_step + 1;
    const message = `version ${version} cannot be ${asked.state}: acknowledge batch ${next_step} first`;
    return { code: "version_ahead", message, next_step };
  }
  if (asked.state === "published" && version < published) {
    return conflict(`version ${published} is published: to go back, register with reset_to`);
  }
  const served = state.replicas[replicaOf(asked)] ?? 0;
  if (asked.state === "applied" && version < served && served <= published) {
    return conflict(`${replicaOf(asked)} serves version ${served} already`);
  }
  return null;
}

function conflict(message: string): TrainerRefusal {
  return { code: "conflict", message, param: "version" };
}

export function replicaOf({ replica }: Report): string {
  return replica ?? ONLY_REPLICA;
}

/** `rows`: newest first. */
export function weightVersionsOf(state: TrainerState, rows: readonly WeightRow[]): WeightVersions {
  const { published, epoch, generation } = state;
  return {
    published,
    applied: { ...appliedOf(state), by_replica: { ...state.replicas } },
    epoch,
    generation,
    versions: rows.map(({ id, version, label, location, sha256, at, ...row }) => ({
      id,
      version,
      state: stateOf(state, { ...row, version }),
      label,
      location,
      sha256,
      at: Math.floor(at / 1000),
    })),
  };
}

/** A later reset went back to an earlier version. */
export function isVoid(
  { generation, reset_to }: TrainerState,
  row: Pick<WeightRow, "generation" | "version">,
): boolean {
  return row.generation < generation && row.version > reset_to;
}

function stateOf(
  state: TrainerState,
  row: Pick<WeightRow, "generation" | "version" | "failed">,
): WeightVersions["versions"][number]["state"] {
  const { published, replicas } = state;
  if (isVoid(state, row) || row.version < published) return "retired";
  const isServed = Object.keys(replicas).length > 0 && appliedOf(state).min >= row.version;
  if (row.version === published && isServed) return "applied";
  if (row.failed === 1) return "failed";
  return row.version > published ? "pending" : "published";
}

/**
 * What engines served and when, from the trainer's reports. A turn whose engine names no weights gets its version from
 * this. Pure.
 *
 * Invariants. If a call may have met either of two versions, it gets the older one, so it never counts as newer than it
 * is. After a reset, an engine may serve weights that were taken back until it reports otherwise.
 */

/** What is served from `at` on. If no replica ever reports, the published version counts as served. */
export function servedNow(state: TrainerState, at: number): ServedWeights {
  const { published, replicas, unheard = [] } = state;
  const reports = Object.keys(replicas).length > 0;
  return {
    at,
    version: reports ? appliedOf(state).min : published,
    newest: newestPossible(state),
    taken_back: unheard.length > 0 ? 1 : 0,
  };
}

export function isSameWeights(one: ServedWeights, other: ServedWeights): boolean {
  return one.version === other.version && one.newest === other.newest && one.taken_back === other.taken_back;
}
