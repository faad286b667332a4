/** Collects from the parts of a run what it needs (leases) and when its next alarm is due. */
import type { RunSpec } from "../messages/wire.ts";
import type { RunClock } from "./alarm.ts";
import type { RunClosing } from "./closing.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { RunHousekeeping } from "./housekeeping.ts";
import type { Needs, RunLeases, Traffic } from "./leases.ts";
import type { Reclaims } from "./reclaims.ts";

export interface RunParts {
  readonly housekeeping: RunHousekeeping;
  readonly dispatcher: Dispatcher;
  readonly leases: RunLeases;
  readonly judging: { traffic(spec: RunSpec): Traffic; nextAt(spec: RunSpec): number | null };
  readonly reclaims: Reclaims;
  readonly training: { nextAt(spec: RunSpec): number | null };
  readonly closing: RunClosing;
}

export function needsOf({ dispatcher, judging }: RunParts, spec: RunSpec): Needs {
  return { rollouts: dispatcher.need(spec), traffic: dispatcher.traffic(spec), judging: judging.traffic(spec) };
}

export function clockOf(parts: RunParts, spec: RunSpec): RunClock {
  const { housekeeping, dispatcher, leases, judging, reclaims, training, closing } = parts;
  return {
    ...housekeeping.clock(spec),
    unnotified: dispatcher.unnotified(),
    canDispatch: dispatcher.remaining(spec) > 0,
    endpointAt: leases.nextAt(spec, needsOf(parts, spec)),
    judgeAt: judging.nextAt(spec),
    reclaimAt: reclaims.nextAt(spec),
    trainingAt: closing.isClosed ? null : training.nextAt(spec),
  };
}
