/** Cloudflare's limits for a whole Worker, minified and gzipped: on the free plan, and on a paid one. */
export const WORKER_BYTES = { free: 3 * 1024 ** 2, paid: 10 * 1024 ** 2 } as const;
