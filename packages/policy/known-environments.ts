/**
 * What the base policy knows to play, and how the demo asks it: the table behind `npm start` and behind `rollcall eval`
 * without an endpoint. It is weak on purpose: format and habits, not skill.
 */
import type { Sampling } from "rollcall/contract";

/** The name under which the policy server serves it. */
export const POLICY_MODEL = "rollcall-policy";

export interface KnownEnvironment {
  readonly environment: string;
  /** The sizes it was shown; with others it is lost. */
  readonly environment_args: Readonly<Record<string, unknown>>;
  readonly sampling: Sampling;
}

/** Its own distribution, a reply as long as it ever needs, and never an empty one. */
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
