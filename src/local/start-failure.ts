/** Why workerd does not run a bundle, told in terms of the files it was made from. */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { dirname, resolve } from "node:path";

const UNCAUGHT = /Uncaught (.+?)(?:\\n|"|\n|$)/;
const AT = /at (?:[^\n]*[(/])?index\.js:(\d+):(\d+)/;

/** `said`: what workerd wrote while it failed to start. Null where that is not the code's fault. */
export function startFailure(said: string, bundle: string): string | null {
  const why = UNCAUGHT.exec(said)?.[1];
  if (why === undefined) return null;
  const [, line, column] = AT.exec(said) ?? [];
  const place = line === undefined ? null : placeOf(bundle, Number(line), Number(column));
  return place === null ? why : `${why}\n  at ${place}`;
}

/** Null where the bundle's map does not know it. */
function placeOf(bundle: string, line: number, column: number): string | null {
  const map: SourceMapPayload = JSON.parse(readFileSync(`${bundle}.map`, "utf8"));
  const found = new SourceMap(map).findEntry(line - 1, column - 1);
  if (!("originalSource" in found)) return null;
  // The bundle was made in another folder and moved; the map says in which.
  const file = resolve(map.sourceRoot || dirname(bundle), found.originalSource);
  return `${file}:${found.originalLine + 1}:${found.originalColumn + 1}`;
}
