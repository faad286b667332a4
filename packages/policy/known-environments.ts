/**
 * The environments that the base policy was trained on, and the settings of the demo: the table behind `npm start` and
 * `rollcall eval` without an endpoint. The policy is weak on purpose: it has learned the format, not the skill.
 */
import type { Sampling } from "rollcall/contract";

/** The model name under which the policy server serves it. */
export const POLICY_MODEL = "rollcall-policy";

export interface KnownEnvironment {
  readonly environment: string;
  /** The sizes it was trained on; it fails at others. */
  readonly environment_args: Readonly<Record<string, unknown>>;
  readonly sampling: Sampling;
}

/** Samples the policy's own distribution, with replies long enough for every task and never empty. */
export const POLICY_SAMPLING: Sampling = { temperature: 1, max_tokens: 16, extra_body: { min_tokens: 1 } };

export const KNOWN_ENVIRONMENTS: readonly KnownEnvironment[] = [
  { environment: "calculator", environment_args: { steps: 1, max: 9 }, sampling: POLICY_SAMPLING },
  { environment: "guess-number", environment_args: { max: 15, max_turns: 5 }, sampling: POLICY_SAMPLING },
  { environment: "grid-walk", environment_args: {}, sampling: POLICY_SAMPLING },
  { environment: "reverse-text", environment_args: {}, sampling: POLICY_SAMPLING },
];

export function knownEnvironment(id: string): KnownEnvironment | undefined {
  return KNOWN_ENVIRONMENTS.find(({ environment }) => environment === id);
}
