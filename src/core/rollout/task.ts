/**
 * Reads the rows of a dataset, and makes tasks of them: the input of rollouts.
 *
 * Invariants. A generated row depends only on the seed and its index. A parsed row is JSON, deep-frozen, and shares
 * nothing with its input. The shuffled order is computed per position and never stored.
 */
import * as z from "zod";
import { isError, messageOf } from "../../contract/errors.ts";
import { canonicalJson, cloneJson, deepFreeze, findNonJson, isRecord, type Json } from "../../contract/json.ts";
import { asMessages, Messages, type ToolDefinition } from "../../contract/messages.ts";
import { seededRandom } from "../../contract/random.ts";
import type { RoutedRow, TaskRow } from "../environments/contract.ts";
import type { Dataset } from "../environments/dataset.ts";
import { InfoError, readInfo } from "../environments/row-info.ts";
import { valueAt } from "../field-path.ts";
import { permute } from "../shuffle.ts";
import type { RolloutTask } from "./rollout.ts";

/** A row that cannot be a task. `path` names the field as in the request: `rows[16].question`. */
export class RowError extends Error {
  override readonly name = "RowError";
  readonly index: number;
  /** The place in the row: `.question`; "" for the row itself. */
  readonly column: string;
  readonly path: string;

  constructor(index: number, column: string, message: string) {
    super(message);
    this.index = index;
    this.column = column;
    this.path = `rows[${index}]${column}`;
  }
}

/** The same as JSON. */
export type RowFault = Pick<RowError, "index" | "column" | "message">;

/** The task in a row. Throws `RowError` if the schema refuses it or it is not a JSON object. */
export function parseRow<Task>({ schema }: Pick<Dataset<Task>, "schema">, row: unknown, index: number): Task & TaskRow {
  const task = aboutRow(index, "its schema threw an error", () => {
    const parsed = schema.safeParse(row);
    if (!parsed.success) throw refusal(parsed.error.issues[0], row, index);
    const stray = findNonJson(parsed.data, "");
    if (stray !== null) throw new RowError(index, stray.path, `JSON cannot represent ${stray.found}`);
    return cloneJson(parsed.data);
  });
  if (!isTaskRow(task)) throw new RowError(index, "", "a row must be an object");
  return deepFreeze(task);
}

/** Row `index` of a dataset with rows of its own. Throws `RowError`, or `RangeError` beyond the end. */
export function rowAt<Task>(from: Dataset<Task>, index: number, seed: number): Task & TaskRow {
  const { kind, length } = from;
  if (kind === "uploaded") throw new RangeError("uploaded rows come with the run");
  if (length !== null && index >= length) throw new RangeError(`row ${index} of ${length}`);
  return parseRow(from, madeRow(from, index, seed), index);
}

function madeRow({ make }: Pick<Dataset<unknown>, "make">, index: number, seed: number): unknown {
  const random = seededRandom("row", seed, index);
  return aboutRow(index, "the dataset failed to produce it", () => make(index, random));
}

/**
 * Returns the value of `read`, or throws `RowError`: refinements, transforms, prompts and getters of a row are the
 * author's code and may throw anything.
 */
function aboutRow<T>(index: number, failed: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (isError(thrown, RowError)) throw thrown;
    throw new RowError(index, "", `${failed}: ${messageOf(thrown)}`);
  }
}

/** The index of the example at `position` of a run's order. An endless dataset (`length: null`) cannot be shuffled. */
export function exampleAt(
  position: number,
  order: { readonly length: number | null; readonly shuffle: boolean; readonly seed: number },
): number {
  const { length, shuffle, seed } = order;
  if (!Number.isSafeInteger(position) || position < 0 || position >= (length ?? Infinity)) {
    throw new RangeError(`position ${position} of ${length ?? "an endless dataset"}`);
  }
  if (!shuffle) return position;
  if (length === null) throw new RangeError("an endless dataset cannot be shuffled");
  return permute(position, length, seed);
}

/** The source of a prompt: an environment, or nothing for rows without one. */
interface PromptMaker {
  readonly systemPrompt?: string | undefined;
  readonly fewShot?: Messages | undefined;
  makePrompt?(task: TaskRow): Messages | string | null;
  route?(row: RoutedRow): RoutedRow & { readonly environment: PromptMaker };
}

/**
 * The input of a rollout, from a parsed row. With a `prompt` column (messages, or a text of role `text`) the few-shot
 * messages are not used, and the system prompt goes first unless the column has its own. Without that column the prompt
 * is system prompt, few-shot messages, `question`. The example id is the row's `example_id` if that is a whole number,
 * else `index`; an id of another type is kept as `src_id`. Throws `RowError`.
 */
export function buildTask(environment: PromptMaker, row: TaskRow, index: number): Omit<RolloutTask, "id" | "task_key"> {
  const info = infoOf(row["info"], index);
  const played = routeRow(environment, { task: row, info }, index);
  checkTools(info, index);
  return {
    ...identify(row, index),
    prompt: aboutRow(index, "the environment failed to build its prompt", () =>
      promptOf(played.environment, played.task, index),
    ),
    answer: asText(row["answer"]),
    info,
  };
}

function routeRow(environment: PromptMaker, row: RoutedRow, index: number) {
  try {
    return environment.route?.(row) ?? { environment, ...row };
  } catch (thrown) {
    throw new RowError(index, ".info.env_id", messageOf(thrown));
  }
}

function checkTools(info: Json, index: number): void {
  try {
    rowTools(info);
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new RowError(index, ".info.tool_defs", thrown.message);
  }
}

function identify(row: TaskRow, index: number): Pick<RolloutTask, "example_id" | "task"> {
  const id = row["example_id"];
  if (Number.isSafeInteger(id) && Number(id) >= 0) {
    return { example_id: Number(id), task: deepFreeze(row) };
  }
  const task = id === undefined || id === null ? row : { ...row, src_id: id };
  return { example_id: index, task: deepFreeze(task) };
}

function promptOf(environment: PromptMaker, row: TaskRow, index: number): Messages {
  const { systemPrompt, fewShot = [] } = environment;
  const system: Messages = systemPrompt === undefined ? [] : [{ role: "system", content: systemPrompt }];
  const own = environment.makePrompt?.(row) ?? row["prompt"] ?? null;
  if (own !== null) return ownPrompt(own, system, index);
  return [...system, ...fewShot, questionOf(row, index)];
}

/** The content hash that names a task: equal rows have equal keys, whatever the order of their columns. */
export function taskKey(row: TaskRow, sha256Hex: (text: string) => Promise<string>): Promise<string> {
  return sha256Hex(canonicalJson(row));
}

function questionOf(row: TaskRow, index: number): Messages[number] {
  const question = row["question"];
  if (typeof question !== "string") throw new RowError(index, ".question", "question is required");
  return { role: "user", content: question };
}

function ownPrompt(prompt: unknown, system: Messages, index: number): Messages {
  if (typeof prompt === "string") {
    if (system.length === 0) return asMessages(prompt);
    throw new RowError(index, ".prompt", "a text cannot follow a system prompt");
  }
  const parsed = Messages.safeParse(prompt);
  if (!parsed.success) throw refusal(parsed.error.issues[0], prompt, index, ".prompt");
  return parsed.data[0]?.role === "system" ? parsed.data : [...system, ...parsed.data];
}

/** A text as it is; undefined or null as ""; anything else as its JSON. */
function asText(answer: Json | undefined): string {
  if (answer === undefined || answer === null) return "";
  return typeof answer === "string" ? answer : JSON.stringify(answer);
}

function infoOf(info: Json | undefined, index: number): Json {
  try {
    return deepFreeze(readInfo(info));
  } catch (thrown) {
    if (!isError(thrown, InfoError)) throw thrown;
    throw new RowError(index, `.${thrown.path}`, thrown.message);
  }
}

function refusal(issue: z.core.$ZodIssue | undefined, value: unknown, index: number, column = ""): RowError {
  const path = issue?.path ?? [];
  const name = `${column}${path.map(segment).join("")}`;
  const missing = issue?.code === "invalid_type" && valueAt(value, path) === undefined;
  const what = missing ? "is required" : (issue?.message ?? "is not allowed");
  const label = name.replace(/^\./, "");
  if (label === "") return new RowError(index, "", what);
  return new RowError(index, name, missing ? `${label} ${what}` : `${label}: ${what}`);
}

function segment(key: PropertyKey): string {
  return typeof key === "number" ? `[${key}]` : `.${String(key)}`;
}

/** Only called with values that passed `findNonJson`. */
function isTaskRow(value: unknown): value is TaskRow {
  return isRecord(value);
}

/**
 * Tools of a row (`info.tool_defs`): the model is offered these instead of the environment's own. Source: verifiers'
 * tool definition, `{name, description, parameters, strict?}`. Its older shapes are refused, as in verifiers.
 */
const RowTools = z.array(
  z.strictObject({
    name: z.string().min(1),
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()),
    strict: z.boolean().nullish(),
  }),
);

/** Null if the row has no tools. Throws TypeError for any other shape. */
export function rowTools(info: Json): readonly ToolDefinition[] | null {
  if (!isRecord(info)) return null;
  if (info["oai_tools"] !== undefined) {
    throw new TypeError("info.oai_tools is the old name in verifiers: use tool_defs");
  }
  if (info["tool_defs"] === undefined || info["tool_defs"] === null) return null;
  const parsed = RowTools.safeParse(info["tool_defs"]);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = ["info", "tool_defs", ...(issue?.path ?? [])].join(".");
    throw new TypeError(`${path}: ${issue?.message}; a tool is {name, description, parameters}`);
  }
  return parsed.data.map(({ strict, ...tool }) => ({
    type: "function",
    function: { ...tool, ...(typeof strict === "boolean" && { strict }) },
  }));
}
