/** Fleets on the wire: engines that serve one policy, each a replica. Keys are accepted and never returned. */
import * as z from "zod";
import { BaseUrl, EndpointKey, Prices, ResourceName } from "../contract/endpoint.ts";
import { FleetUpdate, LocationHint, ReplicaCapabilities } from "../contract/fleet.ts";
import { LIMITS } from "../contract/limits.ts";
import {
  Count,
  EXAMPLE,
  listOf,
  MaybeText,
  named,
  namedInput,
  Positive,
  Seconds,
  Version,
} from "../contract/primitives.ts";
import { WebAddress } from "../contract/shown-text.ts";

const ControlUrl = WebAddress.describe("address for changing its weights; default: the server of base_url");
export const ReplicaRequest = namedInput("ReplicaRequest", {
  name: ResourceName.meta({ example: "gpu-0" }),
  base_url: BaseUrl.meta({ example: "https://gpu-0.example/v1" }),
  api_key: EndpointKey.optional(),
  control_url: ControlUrl.optional(),
  control_key: EndpointKey.optional().describe("sent to control_url as a bearer token; default: api_key"),
  max_concurrent: Positive.max(LIMITS.maxConcurrent).default(64).describe("calls at once"),
});
export type ReplicaRequest = z.output<typeof ReplicaRequest>;
export type ReplicaRequestInput = z.input<typeof ReplicaRequest>;

export const ReplicaPatch = z
  .strictObject({
    base_url: BaseUrl,
    api_key: EndpointKey.nullable(),
    control_url: ControlUrl.nullable(),
    control_key: EndpointKey.nullable(),
    max_concurrent: ReplicaRequest.shape.max_concurrent.unwrap(),
    draining: z.boolean().describe("true: it finishes its calls and gets no new ones"),
  })
  .partial()
  .meta({ id: "ReplicaPatch" });
export type ReplicaPatch = z.output<typeof ReplicaPatch>;

export const FleetRequest = namedInput("FleetRequest", {
  name: ResourceName.meta({ example: "trained" }),
  update: FleetUpdate.prefault({}),
  prices: Prices.nullable().default(null).meta({ example: {} }),
  location_hint: LocationHint.nullable().default(null).describe("location of its runs' objects, near the engines"),
  replicas: z.array(ReplicaRequest).max(LIMITS.fleetReplicas).default([]),
});
export type FleetRequest = z.output<typeof FleetRequest>;
export type FleetRequestInput = z.input<typeof FleetRequest>;

export const FleetPatch = z
  .strictObject({
    name: ResourceName,
    update: FleetUpdate,
    prices: FleetRequest.shape.prices.unwrap(),
    location_hint: FleetRequest.shape.location_hint.unwrap(),
  })
  .partial()
  .meta({ id: "FleetPatch" });
export type FleetPatch = z.output<typeof FleetPatch>;

/**
 * `joining`: not probed yet. `ready`: takes calls. `draining`: finishes its calls. `updating`: its weights are being
 * changed. `down`: does not answer. `stale`: answers, but its weights may not be the ones it should have.
 */
export const REPLICA_STATES = ["joining", "ready", "draining", "updating", "down", "stale"] as const;
export const ReplicaState = z.enum(REPLICA_STATES);
export type ReplicaState = z.infer<typeof ReplicaState>;

export const ReplicaView = named("Replica", {
  object: z.literal("replica"),
  id: z.string().meta({ example: EXAMPLE.replica }),
  name: z.string().meta({ example: "gpu-0" }),
  base_url: z.string().meta({ example: "https://gpu-0.example/v1" }),
  control_url: MaybeText,
  api_key_last4: MaybeText,
  max_concurrent: Positive.meta({ example: 64 }),
  state: ReplicaState.meta({ example: "ready" }),
  reason: MaybeText.describe("why it takes no calls, or a fault that does not stop calls"),
  in_flight: Count.describe("its calls in flight, and places reserved for the next calls"),
  version: Version.nullable().describe(
    "version of the weights that it serves to a training run; null if it serves none or the version is unknown",
  ),
  since: Seconds.nullable().describe("when it entered its state"),
  capabilities: ReplicaCapabilities.nullable().meta({ example: {} }),
  created_at: Seconds,
  updated_at: Seconds,
});
export type ReplicaView = z.infer<typeof ReplicaView>;
export const ReplicaList = listOf(ReplicaView, "ReplicaList", EXAMPLE.replica);

export const FleetView = named("Fleet", {
  object: z.literal("fleet"),
  id: z.string().meta({ example: EXAMPLE.fleet }),
  name: z.string().meta({ example: "trained" }),
  update: FleetUpdate.meta({ example: {} }),
  prices: Prices.nullable().meta({ example: {} }),
  location_hint: LocationHint.nullable(),
  max_concurrent: Count.describe("sum over the replicas that take calls").meta({ example: 64 }),
  weights: z
    .object({ run_id: z.string(), version: Version, generation: Count })
    .nullable()
    .describe("target weights of its replicas; null: no training run has set any"),
  replicas: z.array(ReplicaView),
  created_at: Seconds,
  updated_at: Seconds,
});
export type FleetView = z.infer<typeof FleetView>;
export const FleetList = listOf(FleetView, "FleetList", EXAMPLE.fleet);
