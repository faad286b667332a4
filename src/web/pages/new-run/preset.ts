/** Fills in the form with the settings of a run that exists. Pure. */

import { GATE_KEY } from "../../../contract/gate.ts";
import type { EnvironmentView, RunView } from "../../../contract/run.ts";
import type { TrainingView } from "../../../contract/training-view.ts";
import { type Field, type Kind, type Place, paramOf, sectionsOf, written } from "./fields.ts";
import type { Written } from "./request.ts";

/** An inline endpoint is found by its URL; its key is not known here. */
export function chosenOf({ kind, endpoint, fleet }: RunView): { readonly kind: Kind; readonly place: Place } {
  if (fleet !== null) return { kind, place: "fleet" };
  return { kind, place: endpoint !== null && endpoint.name === null ? "url" : "endpoint" };
}

/** The judges that were given an endpoint of their own: a new run cannot name it. `known`: the project's endpoints. */
export function inlineJudges({ judges }: RunView, known: readonly string[]): readonly string[] {
  return Object.keys(judges).filter((name) => !known.includes(judges[name]?.endpoint ?? ""));
}

/**
 * The texts of the fields. A value that is the field's default is left out, and so is what no field has. `unnamed`:
 * judges whose endpoint is left out.
 */
export function textsOf(
  run: RunView,
  environment: EnvironmentView | undefined,
  unnamed: readonly string[] = [],
): Written {
  const { kind, place } = chosenOf(run);
  const fields = sectionsOf(kind, place, environment).flatMap((section) => section.fields);
  const left = structuredClone(settingsOf(run, unnamed));
  // A field of a whole object has what the fields of its members leave.
  const inner = [...fields].sort((one, other) => other.path.length - one.path.length);
  const texts: Record<string, string> = {};
  for (const field of inner) {
    const text = textOf(field, take(left, field.path));
    if (text !== null && text !== field.placeholder) texts[paramOf(field)] = text;
  }
  return texts;
}

type Settings = { [name: string]: unknown };

/** The run as the request that it may have come from. */
function settingsOf(run: RunView, unnamed: readonly string[]): Settings {
  const { endpoint, fleet, metadata, training, limits, num_examples, rollouts_per_example, ...rest } = run;
  const { environment_args, model, dataset, sampling, max_concurrent, max_cost_micros } = rest;
  const { min_scored, answer_cache, prompts } = rest;
  const judges = Object.fromEntries(
    Object.entries(rest.judges).map(([name, { endpoint: its, model: asked }]) => {
      return [name, unnamed.includes(name) ? { model: asked } : { endpoint: its, model: asked }];
    }),
  );
  const { [GATE_KEY]: _gate, ...pairs } = metadata;
  const of = { environment_args, model, dataset, judges, sampling, limits, max_concurrent, max_cost_micros };
  const found = { prompts, shuffle: rest.shuffle, seed: rest.seed, metadata: pairs, ...placeOf(endpoint, fleet) };
  if (run.kind === "eval") return { ...of, ...found, min_scored, answer_cache, num_examples, rollouts_per_example };
  const { max_steps, max_off_policy_steps, batch_size, advantage, holdout, initial_weights, members } = training ?? {};
  const { target_lead: lead, loss_aggregation, reference, sample_filters: samples } = training ?? {};
  const trained = { max_steps, max_off_policy_steps, batch_size, advantage, holdout, initial_weights, lead };
  return {
    ...of,
    ...found,
    ...trained,
    // A new run has to name the endpoint of its reference.
    ...{ filters: { samples }, loss_aggregation, reference },
    ...(members && { members: membersIn(members) }),
    group_size: rollouts_per_example,
  };
}

/** The settings of members by name, as a request has them. */
function membersIn(members: NonNullable<TrainingView["members"]>): Settings {
  const shared = members.some(({ ratio }) => ratio !== null);
  return Object.fromEntries(
    members.map(({ name, ratio, group_size, advantage }) => {
      return [name, shared ? { ratio, group_size, advantage } : { advantage }];
    }),
  );
}

function placeOf(endpoint: RunView["endpoint"], fleet: RunView["fleet"]): Settings {
  if (fleet !== null) return { fleet: fleet.name ?? fleet.id };
  if (endpoint === null) return {};
  return { endpoint: endpoint.name ?? { base_url: endpoint.base_url } };
}

/** The value at a path, which is removed. */
function take(from: Settings, [name = "", ...inner]: readonly string[]): unknown {
  const value = from[name];
  if (inner.length > 0) return isObject(value) ? take(value, inner) : undefined;
  delete from[name];
  return value;
}

function isObject(value: unknown): value is Settings {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Null if there is nothing to enter. */
function textOf({ kind }: Field, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (isObject(value) && Object.keys(value).length === 0) return null;
  if (kind === "dollars") return String(Number(value) / 1_000_000);
  if (kind === "pairs" && isObject(value)) {
    return Object.entries(value)
      .map(([key, one]) => `${key}=${one}`)
      .join("\n");
  }
  return written(value);
}
