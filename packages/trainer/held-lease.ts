/**
 * A lease kept alive while its batch trains.
 *
 * Invariants. A heartbeat that fails fails nothing: the acknowledgement says whether the lease was still ours. No
 * heartbeat is sent after `end`.
 */
import type { LeaseView } from "../../src/contract/trainer-wire.ts";
import type { TrainerClient } from "../../src/sdk/trainer-client.ts";

const SHORTEST_MS = 1000;
const LONGEST_MS = 60_000;

/** Beats three times in the time that is left, and every minute. `now` is epoch milliseconds. */
export function holdLease(
  client: Pick<TrainerClient, "heartbeat">,
  lease: LeaseView,
  epoch: number,
  now: number,
  say: (line: string) => void,
): { end(): void } {
  const third = (lease.expires_at * 1000 - now) / 3;
  const every = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, third));
  const ended = new AbortController();
  const beat = () => {
    const request = { token: lease.token, epoch };
    client.heartbeat(lease.id, request, { signal: ended.signal }).catch((error: unknown) => {
      if (!ended.signal.aborted) say(`no heartbeat: ${String(error)}`);
    });
  };
  const timer = setInterval(beat, every);
  return {
    end: () => {
      clearInterval(timer);
      ended.abort();
    },
  };
}
