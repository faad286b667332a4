/** The route for a deployment's metrics, in Prometheus' format. */

import { type Operation, serviceOf } from "../kernel/http/operation.ts";
import { PROMETHEUS_TEXT } from "./prometheus.ts";

const service = serviceOf<typeof import("./scrape-metrics.ts")>("telemetry");

export const metricsOperations: readonly Operation[] = [
  {
    id: "scrapeMetrics",
    route: "GET /metrics",
    permission: "metrics",
    reach: "organization",
    summary: "Read counts and latencies of the whole deployment",
    description:
      "For Prometheus. The scope `metrics` concerns the deployment, like `operator`: `admin` does not include it, and a " +
      "key with `operator` can create keys with it. A scrape takes at most 30 reads, and 3 more for each further D1 database. It names no customers; " +
      "endpoints appear with their ids.",
    reply: {
      description: "Prometheus' text format 0.0.4",
      contentType: "text/plain",
      schema: null,
      example:
        '# HELP rollcall_runs Runs that have not ended, by status\n# TYPE rollcall_runs gauge\nrollcall_runs{status="running"} 3\n',
    },
    handle: async (context) => {
      const text = await service(context).scrapeMetrics(context.env, context.var.now());
      return context.body(text, 200, { "content-type": PROMETHEUS_TEXT, "cache-control": "no-store" });
    },
  },
];
