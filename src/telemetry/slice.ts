/** Metrics for Prometheus, and spans for a collector. */
import type { Slice } from "../kernel/http/slice.ts";
import { exportSpans } from "./export-spans.ts";
import { metricsOperations } from "./routes.ts";

export const telemetry: Slice = { operations: metricsOperations, hooks: { onSegment: exportSpans } };
