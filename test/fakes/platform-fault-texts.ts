/** The texts of errors that Cloudflare throws for faults which pass: of D1, of objects, and of R2. */
export const FAULTS = {
  database: [
    "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
    "D1_ERROR: D1 DB is overloaded. Too many requests queued.",
    "D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",
    "D1_ERROR: Internal error in D1 DB storage caused object to be reset.",
    "D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.",
    "D1_ERROR: D1 DB reset because its code was updated.",
    "D1_ERROR: D1 DB's isolate exceeded its memory limit and was reset.",
    "D1_ERROR: D1 DB exceeded its CPU time limit and was reset.",
    "D1_ERROR: Network connection lost.",
    "D1_ERROR: internal error; reference = 7d1g9dkvv4p5o2",
  ],
  object: [
    "Durable Object is overloaded. Requests queued for too long.",
    "Durable Object is overloaded. Too many requests queued.",
    "Durable Object reset because its code was updated.",
    "Durable Object's isolate exceeded its memory limit and was reset.",
    "Durable Object exceeded its CPU time limit and was reset.",
    "Durable Object storage operation exceeded timeout which caused object to be reset.",
    "Internal error while starting up Durable Object storage caused object to be reset.",
    "Network connection lost.",
    "Worker exceeded memory limit.",
    "internal error; reference = ghm3s0tbqi9t1p",
  ],
  store: [
    "put: We encountered an internal error. Please try again. (10001)",
    "get: Reduce your rate of simultaneous reads on the same object. (10058)",
    "Network connection lost.",
  ],
} as const;
