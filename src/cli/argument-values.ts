/** Values of flags that are more than a word: files, JSON, keys kept in variables. Every error names the flag. */
import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isRefusedByFetch } from "../local/ports.ts";
import { usageError } from "./exit.ts";

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
  return { [name]: jsonOrText(value) };
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

export function jsonObject(text: string, flag: string, where = "it"): Record<string, unknown> {
  const value = jsonOrText(text);
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
  throw usageError(`--${flag}: there is no folder ${folder}`, flag);
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
export function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
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
