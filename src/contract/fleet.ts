/**
 * The part of a fleet that runs and tables use: how new weights get onto its engines, and what an engine can do. The
 * rest of the wire is in src/fleets/wire.ts.
 */
import * as z from "zod";
import { EndpointCapabilities, ModelName, ResourceName } from "./endpoint.ts";
import { MaybeText, named, namedInput } from "./primitives.ts";

/** Cloudflare's names of its regions. */
export const LOCATION_HINTS = ["wnam", "enam", "sam", "weur", "eeur", "apac", "oc", "afr", "me"] as const;
export const LocationHint = z.enum(LOCATION_HINTS);
export type LocationHint = z.infer<typeof LocationHint>;

/**
 * How weights get onto a replica.
 * - `lora_versioned`: one LoRA adapter per version, `<name>@<step>`, which calls name as their model.
 * - `reload`: vLLM's development routes; the engine loads a checkpoint from a path (`collective_rpc reload_weights`).
 * - `prime_rl`: prime-rl's own server, `POST /update_weights {"weight_dir"}`.
 * - `reported`: another program does it, and reports `pending` and `applied` for each replica.
 */
export const UPDATE_MODES = ["lora_versioned", "reload", "prime_rl", "reported"] as const;
export const UpdateMode = z.enum(UPDATE_MODES);
export type UpdateMode = z.infer<typeof UpdateMode>;

/** Less than the time limit of an alarm. */
const PhaseSeconds = z.number().positive().max(780);
export const FleetUpdate = namedInput("FleetUpdate", {
  mode: UpdateMode.default("reported"),
  adapter: ResourceName.default("policy").describe("for LoRA: the adapter's name, before the @ of its version"),
  pause: z.enum(["wait", "keep", "abort"]).default("wait").describe("how an engine is paused, if it can be"),
  pause_s: PhaseSeconds.default(120).describe("seconds that calls in flight have to finish"),
  update_s: PhaseSeconds.default(600).describe("seconds to load the weights"),
  resume_s: PhaseSeconds.default(60),
});
export type FleetUpdate = z.output<typeof FleetUpdate>;

/** What an engine can do, found by probing its routes and never derived from its version. */
export const ReplicaCapabilities = named("ReplicaCapabilities", {
  ...EndpointCapabilities.shape,
  version: MaybeText.describe("reply of GET /version").meta({ example: "0.32.0" }),
  routes: z
    .array(z.string())
    .describe("of the routes that an update may use, those it has")
    .meta({ example: ["/pause", "/resume"] }),
  weight_info: MaybeText.describe("the weights it reports, if it reports them"),
});
export type ReplicaCapabilities = z.infer<typeof ReplicaCapabilities>;

export const FleetOrName = ModelName.describe("a fleet by name or id, instead of an endpoint");
