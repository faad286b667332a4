/**
 * The services that the routes of slices call, by name. They use Durable Objects, so this file does not load in Node.
 */
import { accountsService as accounts } from "./accounts/service.ts";
import * as agents from "./agents/service.ts";
import { billingService as billing } from "./billing/service.ts";
import * as replicas from "./fleets/replicas.ts";
import * as fleets from "./fleets/service.ts";
import * as npm from "./hub/npm.ts";
import * as python from "./hub/python.ts";
import * as hub from "./hub/service.ts";
import * as retention from "./retention/service.ts";
import * as reviews from "./reviews/service.ts";
import * as sharing from "./sharing/service.ts";
import * as telemetry from "./telemetry/scrape-metrics.ts";
import * as deliveries from "./triggers/receive-delivery.ts";
import * as triggers from "./triggers/service.ts";
import * as webhooks from "./webhooks/service.ts";

export const SLICE_SERVICES = {
  fleets,
  replicas,
  webhooks,
  triggers,
  deliveries,
  sharing,
  reviews,
  hub,
  agents,
  npm,
  python,
  telemetry,
  retention,
  billing,
  accounts,
};
