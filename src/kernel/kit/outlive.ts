import { waitUntil } from "cloudflare:workers";

/** Returns the same promise; its work continues even if the caller of the request disconnects. */
export function outlive<T>(work: Promise<T>): Promise<T> {
  waitUntil(Promise.allSettled([work]));
  return work;
}
