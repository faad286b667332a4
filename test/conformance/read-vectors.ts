/** Reads a file of vectors. Only in Node; workerd gets its content. */
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import * as z from "zod";
import { VectorFile } from "./vector-file.ts";

/** The file of another suite in the same format, or ours. */
export function vectorsPath(): string {
  return process.env["CONFORMANCE"] || join(import.meta.dirname, "vectors", "verifiers.json");
}

/** Throws an Error that names the file and its fault. */
export async function readVectors(path: string): Promise<VectorFile> {
  const named = relative(process.cwd(), path) || path;
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new Error(`cannot read the vectors in ${named}`, { cause });
  });
  const parsed = VectorFile.safeParse(jsonIn(text, named));
  if (parsed.success) return parsed.data;
  throw new Error(`${named} is no file of vectors:\n${z.prettifyError(parsed.error)}`);
}

function jsonIn(text: string, named: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`${named} is not JSON`, { cause });
  }
}
