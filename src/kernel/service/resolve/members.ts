/** The checks of a training run's settings for members of a group of environments. Each error names the field. */
import type { TrainingRequest, TrainingSpec } from "../../../contract/training-request.ts";
import { formatPath } from "../../../core/field-path.ts";
import { type Result, refuse } from "../../messages/refusal.ts";
import { type Played, WHOLE_GROUP } from "./play.ts";

export const GROUP_OF_ONE = `a group of 1 is always dropped as zero_variance: use 2 or more, or filters.zero_variance "keep"`;

type Settings = NonNullable<TrainingRequest["members"]>;
/** The part of the request that decides it. */
export type MembersAsked = Pick<TrainingRequest, "members" | "min_group_size">;
type Fault = Result<never> | null;

/** Refuses settings of members that the environment does not have, or that would train on nothing. */
export function refuseMembers(asked: MembersAsked | null, spec: TrainingSpec, play: Played): Fault {
  const settings = asked?.members;
  if (settings === undefined) return null;
  const { pin, environment } = play;
  const known = environment.description.players.flatMap(({ member }) => member ?? []);
  if (known.length === 0) return refused(["members"], `${pin.id} is not a group of environments`);
  const unknown = Object.keys(settings).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    return refused(["members", unknown], `is not a member of ${pin.id}: use ${known.join(", ")}`);
  }
  return (
    refuseRatios(settings, known) ??
    refuseSizes(asked?.min_group_size, spec, play) ??
    refuseAdvantages(spec) ??
    refuseRows(settings, spec, play)
  );
}

/** `path`: the field in the request. */
function refused(path: readonly string[], why: string): Result<never> {
  const param = formatPath(path);
  return refuse("invalid_request", `${param}: ${why}`, param);
}

function refuseRatios(settings: Settings, known: readonly string[]): Fault {
  const given = known.filter((name) => Object.hasOwn(settings, name) && settings[name]?.ratio !== undefined);
  const missing = known.find((name) => !given.includes(name));
  if (given.length === 0 || missing === undefined) return null;
  return refused(["members", missing, "ratio"], "is missing: set a ratio for every member, or for none");
}

function refuseSizes(
  least: number | undefined,
  { members = [], zero_variance }: TrainingSpec,
  { pin, whole_groups }: Played,
): Fault {
  for (const { name, group_size, advantage } of members) {
    if (least !== undefined && group_size < least) {
      return refused(["min_group_size"], `must be at most the group_size of ${name} (${group_size})`);
    }
    const path = ["members", name, "group_size"];
    const alone = "singleton" in advantage && advantage.singleton === "raw";
    if (group_size === 1 && !alone && zero_variance !== "keep") return refused(path, GROUP_OF_ONE);
    if (whole_groups && group_size > WHOLE_GROUP) {
      return refused(path, `${pin.id} scores whole groups, of at most ${WHOLE_GROUP} rollouts`);
    }
  }
  return null;
}

/** The manifest of a batch says by the run's advantage whether its rows have advantages. */
function refuseAdvantages({ members = [], advantage: usual }: TrainingSpec): Fault {
  const other = members.find(({ advantage }) => (advantage.name === "none") !== (usual.name === "none"));
  if (other === undefined) return null;
  const why = "none must be the advantage of the run and of all members, or of none of them";
  return refused(["members", other.name, "advantage"], why);
}

/** To open groups by ratio, it must be known which rows are of which member. */
function refuseRows(settings: Settings, { members = [] }: TrainingSpec, { pin, rows: { dataset } }: Played): Fault {
  const shared = Object.entries(settings).find(([, own]) => own.ratio !== undefined || own.group_size !== undefined);
  if (shared === undefined) return null;
  const [name, { ratio }] = shared;
  const path = ["members", name, ratio === undefined ? "group_size" : "ratio"];
  if (dataset.kind === "uploaded") {
    return refused(path, "cannot be set if the rows come with the run: only advantage can");
  }
  const rowless = members.find(({ share }) => share === undefined);
  if (rowless !== undefined) {
    return refused(
      path,
      `${pin.id} does not say which rows are of ${rowless.name}: publish it again with this version`,
    );
  }
  const empty = members.find(({ share }) => share?.rows.length === 0);
  return empty === undefined ? null : refused(["environment"], `its member ${empty.name} has no rows`);
}
