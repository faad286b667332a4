/** Values of flags that are more than a word: files, JSON, keys kept in variables. Every error names the flag. */
import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { findLost } from "../contract/lost-json.ts";
import { isRefusedByFetch } from "../local/ports.ts";
import { usageError } from "./exit.ts";

interface Target {
  readonly model: string;
  readonly endpoint: string | { readonly base_url: string; readonly api_key?: string };
}

/** Each is a JSON object, the name of a file with one, or k=v where v is JSON or else a string. */
export function environmentArgs(given: readonly string[]): Record<string, unknown> {
  return Object.assign({}, ...given.map(environmentArg));
}

function environmentArg(text: string): Record<string, unknown> {
  if (text.trimStart().startsWith("{")) return jsonObject(text, "env-args");
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    return jsonObject(readText(text, "env-args"), "env-args");
  }
  return { [name]: jsonOrText(value, "env-args", `${name}: `) };
}

/** JSON, or else the text itself. JSON of which a part would be lost is refused: `where` says what it is of. */
export function jsonOrText(text: string, flag: string, where = ""): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
  const lost = findLost(text, value);
  if (lost !== null) throw usageError(`--${flag}: ${where}${lost.message}`, flag);
  return value;
}

export function jsonObject(text: string, flag: string, where = "it"): Record<string, unknown> {
  const value = jsonOrText(text, flag, where === "it" ? "" : `${where}: `);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw usageError(`--${flag}: ${where} is not a JSON object`, flag);
  }
  return { ...value };
}

export function readText(file: string, flag: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw usageError(`--${flag}: ${why}`, flag);
  }
}

/** Throws when the folder of a file to be written is not there: before anything is spent. */
export function checkFolderOf(file: string, flag: string): void {
  const folder = dirname(resolve(file));
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw usageError(`--${flag}: the folder ${folder} does not exist`, flag);
}

/** The value of the environment variable a flag names; undefined without the flag. */
export function variableNamedBy(flag: string, variable: string | undefined): string | undefined {
  if (variable === undefined) return undefined;
  const value = process.env[variable];
  if (value) return value;
  throw usageError(`--${flag}: the environment variable ${variable} is not set`, flag);
}

export function urlOf(flag: string, text: string | undefined): string | undefined {
  if (text !== undefined && !URL.canParse(text)) {
    throw usageError(`--${flag}: ${text} is not a URL`, flag);
  }
  return text;
}

/** Without what is undefined: nothing is sent that nobody asked for. */
export function defined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as typeof fields;
}

/** Of --port; absent without it. */
export function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw usageError(`--port: ${text} is not a port`, "port");
  }
  if (isRefusedByFetch(port)) {
    throw usageError(`--port: browsers and fetch refuse to connect to port ${text}`, "port");
  }
  return port;
}

/**
 * `--judge NAME=MODEL@ENDPOINT`: who answers for a judge, by an endpoint the platform knows, or by a URL. `keyVariable`
 * holds the key of those given by URL; left out, OPENAI_API_KEY does, where it is set.
 */
export function judgeTargets(given: readonly string[], keyVariable?: string): Record<string, Target> {
  const named = given.map((text) => targetOf(text, keyVariable));
  if (keyVariable !== undefined && !named.some(([, { endpoint }]) => typeof endpoint === "object")) {
    const message = "--judge-key-var: needs a --judge with a URL";
    throw usageError(message, "judge-key-var");
  }
  return Object.fromEntries(named);
}

/** A model's name may hold an @; the name of an endpoint, and a URL from its scheme on, do not. */
function targetOf(text: string, keyVariable: string | undefined): [string, Target] {
  const [, name, model, endpoint] = /^([^=]+)=(.+)@([^@]+)$/s.exec(text) ?? [];
  if (name === undefined || model === undefined || endpoint === undefined) {
    throw usageError(`--judge: ${text} is not NAME=MODEL@ENDPOINT`, "judge");
  }
  if (!/^https?:/i.test(endpoint)) return [name, { model, endpoint }];
  const base_url = urlOf("judge", endpoint) ?? endpoint;
  const own = variableNamedBy("judge-key-var", keyVariable);
  const api_key = own ?? (process.env["OPENAI_API_KEY"] || undefined);
  return [name, { model, endpoint: { base_url, ...(api_key !== undefined && { api_key }) } }];
}
