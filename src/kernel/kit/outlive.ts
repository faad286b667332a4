import { waitUntil } from "cloudflare:workers";

/** The same promise, whose work goes on though the caller of the request has gone away. */
export function outlive<T>(work: Promise<T>): Promise<T> {
  waitUntil(Promise.allSettled([work]));
  return work;
}
