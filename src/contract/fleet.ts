/**
 * Fleets on the wire: engines that serve one policy, each a replica, and how new weights get onto them. Keys go in and
 * never come out.
 */
import * as z from "zod";
import { BaseUrl, EndpointCapabilities, EndpointKey, ModelName, Prices, ResourceName } from "./endpoint.ts";
import { LIMITS } from "./limits.ts";
import { Count, EXAMPLE, listOf, MaybeText, named, namedInput, Positive, Seconds, Version } from "./primitives.ts";
import { WebAddress } from "./shown-text.ts";

/** As Cloudflare names its regions. */
export const LOCATION_HINTS = ["wnam", "enam", "sam", "weur", "eeur", "apac", "oc", "afr", "me"] as const;
export const LocationHint = z.enum(LOCATION_HINTS);
export type LocationHint = z.infer<typeof LocationHint>;

/**
 * How weights get onto a replica.
 * - `lora_versioned`: a LoRA adapter a version, `<name>@<step>`, which calls name as their model.
 * - `reload`: vLLM's development routes; the engine reads a checkpoint from a path (`collective_rpc reload_weights`).
 * - `prime_rl`: prime-rl's own server, `POST /update_weights {"weight_dir"}`.
 * - `reported`: somebody else does it, and reports `pending` and `applied` for each replica.
 */
export const UPDATE_MODES = ["lora_versioned", "reload", "prime_rl", "reported"] as const;
export const UpdateMode = z.enum(UPDATE_MODES);
export type UpdateMode = z.infer<typeof UpdateMode>;

/** Less than an alarm may take. */
const PhaseSeconds = z.number().positive().max(780);
export const FleetUpdate = namedInput("FleetUpdate", {
  mode: UpdateMode.default("reported"),
  adapter: ResourceName.default("policy").describe("of a LoRA: the adapter's name, before the @ of its version"),
  pause: z.enum(["wait", "keep", "abort"]).default("wait").describe("how an engine is paused, where it can be"),
  pause_s: PhaseSeconds.default(120).describe("seconds that calls under way have to end"),
  update_s: PhaseSeconds.default(600).describe("seconds that the weights have to be loaded"),
  resume_s: PhaseSeconds.default(60),
});
export type FleetUpdate = z.output<typeof FleetUpdate>;

/** What one engine was seen to be able to do: routes it has, found out and never taken from its version. */
export const ReplicaCapabilities = named("ReplicaCapabilities", {
  ...EndpointCapabilities.shape,
  version: MaybeText.describe("what GET /version said").meta({ example: "0.32.0" }),
  routes: z
    .array(z.string())
    .describe("of those that an update may use, the ones it has")
    .meta({ example: ["/pause", "/resume"] }),
  weight_info: MaybeText.describe("the weights it says it has, where it says so"),
});
export type ReplicaCapabilities = z.infer<typeof ReplicaCapabilities>;

const ControlUrl = WebAddress.describe("where its weights are changed; default: the server of base_url");
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
    draining: z.boolean().describe("true: it ends what it has, and gets nothing new"),
  })
  .partial()
  .meta({ id: "ReplicaPatch" });
export type ReplicaPatch = z.output<typeof ReplicaPatch>;

export const FleetRequest = namedInput("FleetRequest", {
  name: ResourceName.meta({ example: "trained" }),
  update: FleetUpdate.prefault({}),
  prices: Prices.nullable().default(null).meta({ example: {} }),
  location_hint: LocationHint.nullable()
    .default(null)
    .describe("where its runs' objects are to live, near the engines"),
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
 * `joining`: not probed yet. `ready`: takes calls. `draining`: ends what it has. `updating`: its weights are changed.
 * `down`: does not answer. `stale`: answers, and its weights are not known to be the ones that it should have.
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
  reason: MaybeText.describe("why it takes no calls, or what is wrong with it all the same"),
  in_flight: Count.describe("calls that it has been given and that have not ended"),
  version: Version.nullable().describe("of the weights it serves to a training run; null: of none, or nobody knows"),
  since: Seconds.nullable().describe("when it came into its state"),
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
  max_concurrent: Count.describe("the sum of those replicas' that take calls").meta({ example: 64 }),
  weights: z
    .object({ run_id: z.string(), version: Version, generation: Count })
    .nullable()
    .describe("what its replicas are to serve; null: no training run has said so"),
  replicas: z.array(ReplicaView),
  created_at: Seconds,
  updated_at: Seconds,
});
export type FleetView = z.infer<typeof FleetView>;
export const FleetList = listOf(FleetView, "FleetList", EXAMPLE.fleet);

export const FleetOrName = ModelName.describe("a fleet by name or id, in place of an endpoint");
