/** What a scoring pass of a run found to be owed by its judges. */

import type { JudgeAsk, JudgeBench } from "../../core/rubrics/judges.ts";
import { newBench } from "../../core/rubrics/score.ts";
import type { Owing } from "../contract/judge-outcome.ts";
import type { RunSpec } from "../contract/wire.ts";
import { sha256Hex } from "../kit/secrets.ts";

/** The judges of a pass that asks nobody: it shows what is owed. */
export function benchOf(spec: RunSpec, members: number): JudgeBench {
  return newBench({ known: new Map(), ...courtOf(spec) }, members);
}

/** Who may be asked, and how asks are known again. */
export function courtOf({ judges = {} }: RunSpec) {
  return { named: Object.keys(judges), hash: sha256Hex };
}

/** By the endpoint of the first that may be asked: one at a time holds permits for the unit. */
export function owingOf(
  { judges }: RunSpec,
  unit: number,
  owed: readonly JudgeAsk[],
  notBefore: (key: string) => number = () => 0,
): Owing {
  const [first, ...others] = [...owed].sort((a, b) => notBefore(a.key) - notBefore(b.key));
  const endpointOf = (ask: JudgeAsk | undefined) => judges?.[ask?.judge ?? ""]?.endpoint_id ?? "";
  const endpoint_id = endpointOf(first);
  const alike = others.filter((other) => endpointOf(other) === endpoint_id);
  const not_before = notBefore(first?.key ?? "");
  const calls = 1 + alike.length;
  return { unit, endpoint_id, calls, ...(not_before > 0 && { not_before }) };
}
