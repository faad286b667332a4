/**
 * Checks the events of a run, in the order of their ids: they are numbered without gaps, each rollout ends once, the
 * run's own end comes last, and every change of status is allowed. While a run is paused nothing is dispatched.
 */
import { isTerminalEvent } from "../../src/contract/event-names.ts";
import type { RunEvent } from "../../src/contract/run-events.ts";
import type { Told } from "./account.ts";

export function eventsInOrder({ events, results, run }: Pick<Told, "events" | "results" | "run">): string[] {
  if (run.finished_at === null) return [];
  return [
    ...gapsIn(events),
    ...endsOnce(events, new Set(results.map(({ rollout_id }) => rollout_id))),
    ...standings(events),
    ...lastIs(events.at(-1), run.status),
  ];
}

/** An end that is revoked keeps its number; so do events that are no longer kept. */
function gapsIn(events: readonly RunEvent[]): string[] {
  return events.flatMap((event, index) => {
    const before = events[index - 1]?.id ?? 0;
    const isNext = event.id === before + 1 || (index === 0 && event.event === "snapshot");
    const reopened = isRetry(event) && event.id === before + 2;
    return isNext || reopened ? [] : [`event ${event.id} follows ${before}`];
  });
}

function endsOnce(events: readonly RunEvent[], ids: ReadonlySet<string>): string[] {
  const ended = events.flatMap((event) => (event.event === "rollout.finished" ? [event.data.rollout_id] : []));
  const told = new Set(ended);
  const forgotten = events.some(({ event }) => event === "snapshot");
  return [
    ...ended.filter((id, at) => ended.indexOf(id) < at).map((id) => `${id} ended twice`),
    ...[...told].filter((id) => !ids.has(id)).map((id) => `${id} ended and has no result`),
    ...[...ids].filter((id) => !(told.has(id) || forgotten)).map((id) => `${id} has a result and did not end`),
  ];
}

function standings(events: readonly RunEvent[]): string[] {
  let paused = false;
  const broken = events.flatMap((event) => {
    if (event.event !== "run.paused" && event.event !== "run.resumed") return [];
    const pauses = event.event === "run.paused";
    const twice = pauses === paused && !isRetry(event) ? [`${event.event} twice in a row`] : [];
    paused = pauses;
    const says = event.data.status;
    return pauses === (says === "paused") ? twice : [...twice, `${event.event} says ${says}`];
  });
  const ends = events.slice(0, -1).filter(({ event }) => isTerminalEvent(event));
  return [
    ...broken,
    ...dispatchedInPauses(events),
    ...ends.map(({ id }) => `event ${id} ends the run and is not the last`),
  ];
}

function dispatchedInPauses(events: readonly RunEvent[]): string[] {
  let [paused, known]: [boolean, number | null] = [false, null];
  return events.flatMap((event) => {
    if (event.event === "run.paused" || event.event === "run.resumed") {
      [paused, known] = [event.event === "run.paused", null];
    }
    if (event.event !== "run.progress" || !paused) return [];
    const { dispatched } = event.data.counts;
    const before = known ?? dispatched;
    known = dispatched;
    return dispatched === before ? [] : [`${dispatched - before} were dispatched in a pause`];
  });
}

function lastIs(last: RunEvent | undefined, status: string): string[] {
  return last?.event === `run.${status}` ? [] : [`the last event is ${last?.event}, not ${status}`];
}

function isRetry(event: RunEvent): boolean {
  return event.event === "run.resumed" && event.data.reason === "retry";
}
