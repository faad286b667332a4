/**
 * Calls to a run's object that go through a gatherer: it sends the calls of many callers in one. The methods are those
 * that are called once or more for each rollout.
 */
import type { Scope } from "../../contract/scope.ts";
import type { RunRpc } from "./rpc.ts";

export type GatheredName =
  | "admit"
  | "answered"
  | "allow"
  | "scoringGroupsToScore"
  | "scored"
  | "requestJudgements"
  | "takeJudging"
  | "judged";

/** The methods of a run's object that a gatherer passes on. */
export type GatheredRpc = Pick<RunRpc, GatheredName>;

export type GatheredResult<Name extends GatheredName = GatheredName> = Awaited<ReturnType<RunRpc[Name]>>;

/** One caller's call. */
export type GatheredCall = {
  [Name in GatheredName]: { readonly method: Name; readonly args: Parameters<RunRpc[Name]> };
}[GatheredName];

/** A call of this method. */
export type CallOf<Name extends GatheredName> = Extract<GatheredCall, { readonly method: Name }>;

/**
 * The result of one of several calls that were sent together. `failed`: the error that the call would have thrown.
 * `later`: it was not made, because the other results fill the reply; it must be sent again.
 */
export type GatheredReply =
  | { readonly done: GatheredResult }
  | { readonly failed: { readonly name: string; readonly message: string } }
  | { readonly later: true };

/** The method of a run's object for its gatherers. */
export interface GatheringRpc {
  /** Calls of several callers. Each has its own reply, in order; an error of one fails no other. */
  gathered(calls: readonly GatheredCall[]): Promise<GatheredReply[]>;
}

export interface GatheredRun {
  readonly scope: Scope;
  readonly run_id: string;
}

/** A gatherer of one run. It stores nothing: a call is answered after the run's object has stored its effect. */
export interface GathererRpc {
  gather<Name extends GatheredName>(run: GatheredRun, call: CallOf<Name>): Promise<GatheredResult<Name>>;
}
