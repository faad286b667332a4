/** What a deployment says of itself, in the words of Prometheus. */
import { PROMETHEUS_TEXT } from "../runtime/kit/prometheus.ts";
import type { Operation } from "./operation.ts";

export const metricsOperations: readonly Operation[] = [
  {
    id: "scrapeMetrics",
    route: "GET /metrics",
    permission: "metrics",
    reach: "organization",
    summary: "Read counts and latencies of the whole deployment",
    description:
      "For Prometheus. The scope `metrics` is about the deployment, as `operator` is: `admin` does not include it, and a " +
      "key with `operator` makes keys that have it. A scrape takes at most 20 reads. What it tells names no customer; " +
      "endpoints stand under their ids.",
    reply: {
      description: "Prometheus' text format 0.0.4",
      contentType: "text/plain",
      schema: null,
      example:
        '# HELP rollcall_runs Runs that have not ended, by status\n# TYPE rollcall_runs gauge\nrollcall_runs{status="running"} 3\n',
    },
    handle: async (context) => {
      const { services, now } = context.var;
      const text = await services.scrapeMetrics(context.env, now());
      return context.body(text, 200, { "content-type": PROMETHEUS_TEXT, "cache-control": "no-store" });
    },
  },
];
