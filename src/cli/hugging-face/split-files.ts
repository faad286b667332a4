/**
 * The files of one split of a dataset. Hugging Face converts the newest revision of a dataset to Parquet: these files are
 * used by default. If a revision is named, or the dataset was not converted, the files of the repository are used.
 * Sources: https://huggingface.co/docs/dataset-viewer/parquet and https://huggingface.co/docs/datasets/repository_structure.
 */
import { matchesGlob } from "node:path";
import * as z from "zod";
import { type CommandError, usageError } from "../exit.ts";
import { formatOf, TABLE_ENDINGS } from "../tables/table.ts";
import { addressText, type DatasetAddress } from "./address.ts";
import type { Hub } from "./hub.ts";

export interface SplitFiles {
  readonly repository: string;
  /** The commit of the repository. */
  readonly commit: string;
  readonly config: string;
  readonly split: string;
  readonly files: readonly { readonly url: string; readonly path: string }[];
  /** Hugging Face converts only the first 5 GB of a large dataset. */
  readonly partial: boolean;
}

/** Configurations, their splits, and the paths or URLs of the files of each. */
type Layout = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

const Patterns = z.union([z.string(), z.array(z.string())]).transform((value) => [value].flat());
const DataFiles = z.union([
  z.array(z.object({ split: z.string(), path: Patterns })),
  Patterns.transform((path) => [{ split: "train", path }]),
]);
const Info = z.object({
  id: z.string(),
  sha: z.string(),
  siblings: z.array(z.object({ rfilename: z.string() })).default([]),
  cardData: z
    .object({ configs: z.array(z.object({ config_name: z.string(), data_files: DataFiles.optional() })).optional() })
    .nullish()
    .catch(null),
});
type Info = z.infer<typeof Info>;
const Conversion = z.record(z.string(), z.record(z.string(), z.array(z.string())));

/** Statuses of a reply for a dataset that was not converted. */
const NOT_CONVERTED = [400, 404, 405, 422, 501];
const PARTIAL = "partial-";
const DEFAULT = "default";
const MAX_LISTED = 40;

/** Throws a usage error that lists the configurations or splits if one is missing or does not exist. */
export async function findSplit(hub: Hub, address: DatasetAddress, config: string | null): Promise<SplitFiles> {
  const what = addressText({ ...address, split: null });
  const revision = address.revision === null ? "" : `/revision/${encodeURIComponent(address.revision)}`;
  const info = await hub.json(`/api/datasets/${address.repository}${revision}`, Info, what);
  if (info === null) throw new Error("the reply cannot be absent");
  const converted =
    address.revision === null
      ? await hub.json(`/api/datasets/${info.id}/parquet`, Conversion, what, NOT_CONVERTED)
      : null;
  const isConverted = converted !== null && Object.keys(converted).length > 0;
  const layout = isConverted ? layoutOfConversion(converted) : layoutOfRepository(info);
  if (layout.size === 0) throw usageError(`${what}: has no file that ends in ${TABLE_ENDINGS.join(", ")}`, "dataset");
  const chosen = choose("--config", "configurations", config, layout, what, DEFAULT);
  const splits = layout.get(chosen) ?? new Map<string, readonly string[]>();
  const split = choose("split", "splits", address.split, splits, `${what}, ${chosen}`, null);
  const found = splits.get(split) ?? [];
  return {
    ...{ repository: info.id, commit: info.sha, config: chosen, split },
    partial: isConverted && converted[chosen]?.[split] === undefined,
    files: found.map((file) => (isConverted ? { url: file, path: pathOf(file) } : fileOf(info, file))),
  };
}

/** The asked-for key, or the only one, or `usual` if there is one. */
function choose(
  asked: string,
  noun: string,
  given: string | null,
  from: ReadonlyMap<string, unknown>,
  what: string,
  usual: string | null,
): string {
  const names = [...from.keys()];
  const [only] = names;
  if (given !== null && from.has(given)) return given;
  if (given === null && only !== undefined && names.length === 1) return only;
  if (given === null && usual !== null && from.has(usual)) return usual;
  const listed = names.slice(0, MAX_LISTED).join(", ") + (names.length > MAX_LISTED ? ", …" : "");
  throw unknownName(given === null ? null : `${asked} ${given}`, noun, what, listed, asked);
}

function unknownName(given: string | null, noun: string, what: string, listed: string, asked: string): CommandError {
  const how = asked === "split" ? "add :SPLIT to the address" : "add --config";
  const why = given === null ? `has several ${noun}: ${how}` : `has no ${given}`;
  return usageError(`${what}: ${why}; the ${noun} are ${listed}`, asked === "split" ? "dataset" : "config");
}

/** A split of which only the first files are converted has another name there. */
function layoutOfConversion(converted: z.infer<typeof Conversion>): Layout {
  return new Map(
    Object.entries(converted).map(([config, splits]) => {
      return [config, new Map(Object.entries(splits).map(([name, urls]) => [name.replace(PARTIAL, ""), urls]))];
    }),
  );
}

/** As the dataset card has it; without it, by the names of the files. */
function layoutOfRepository({ siblings, cardData }: Info): Layout {
  const paths = siblings.map(({ rfilename }) => rfilename).filter((path) => formatOf(path) !== null);
  const configs = (cardData?.configs ?? []).flatMap(({ config_name, data_files }) => {
    if (data_files === undefined) return [];
    const splits = data_files.map(({ split, path: patterns }): [string, string[]] => {
      return [split, paths.filter((path) => patterns.some((pattern) => matchesGlob(path, pattern)))];
    });
    return [[config_name, new Map(splits.filter(([, files]) => files.length > 0))] as const];
  });
  if (configs.length > 0) return new Map(configs);
  const data = paths.filter((path) => !/(^|\/)(dataset_infos?|metadata|\.[^/]*)\.json$/.test(path));
  return data.length === 0 ? new Map() : new Map([[DEFAULT, Map.groupBy(data.sort(), splitNamed)]]);
}

const SPLIT_WORDS = {
  train: ["train", "training"],
  validation: ["validation", "valid", "val", "dev"],
  test: ["test", "testing", "eval", "evaluation"],
};

/** The split that a word of the path names; `train` without one. */
function splitNamed(path: string): string {
  const words = path.toLowerCase().split(/[^a-z]+/);
  const named = Object.entries(SPLIT_WORDS).find(([, own]) => own.some((word) => words.includes(word)));
  return named?.[0] ?? "train";
}

function fileOf({ id, sha }: Info, path: string) {
  return { url: `/datasets/${id}/resolve/${sha}/${path.split("/").map(encodeURIComponent).join("/")}`, path };
}

/** The end of the URL of a converted file: `main/test/0.parquet`. */
function pathOf(url: string): string {
  return decodeURIComponent(url.split("/parquet/").at(-1) ?? url);
}
