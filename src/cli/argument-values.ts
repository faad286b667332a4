/**
 * Parses flag values that are more than a word: files, JSON, keys in environment variables. Every error names the flag.
 */
import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { findLost } from "../contract/lost-json.ts";
import { isRefusedByFetch } from "../local/ports.ts";
import { usageError } from "./exit.ts";

interface Target {
  readonly model: string;
  readonly endpoint: string | { readonly base_url: string; readonly api_key?: string };
}

/** Each value is a JSON object, the name of a file that holds one, or k=v where v is JSON or else a string. */
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

/**
 * The parsed JSON, or the text itself if it is not JSON. Refuses JSON that JavaScript would change when it parses it;
 * `where` names the part in the error.
 */
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

/** Throws if the folder of an output file does not exist, before anything is spent. */
export function checkFolderOf(file: string, flag: string): void {
  const folder = dirname(resolve(file));
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw usageError(`--${flag}: the folder ${folder} does not exist`, flag);
}

/** The value of the environment variable that a flag names; undefined without the flag. */
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

/** The object without its undefined fields, so that the request holds only what the user gave. */
export function defined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as typeof fields;
}

/** The value of --port; undefined without the flag. */
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
 * `--judge NAME=MODEL@ENDPOINT`: which model answers for a judge, at an endpoint of the platform or at a URL.
 * `keyVariable` names the environment variable that holds the key for the URLs; without it, OPENAI_API_KEY is used if
 * it is set.
 */
export function judgeTargets(given: readonly string[], keyVariable?: string): Record<string, Target> {
  const named = given.map((text) => targetOf(text, keyVariable));
  if (keyVariable !== undefined && !named.some(([, { endpoint }]) => typeof endpoint === "object")) {
    const message = "--judge-key-var: needs a --judge with a URL";
    throw usageError(message, "judge-key-var");
  }
  return Object.fromEntries(named);
}

/** A model's name may contain an @; the name of an endpoint, and a URL after its scheme, may not. */
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
