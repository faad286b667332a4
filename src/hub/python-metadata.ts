/** METADATA of a wheel: fields as in a mail, then the README. */
import { LIMITS } from "../contract/limits.ts";
import { ShownText } from "../contract/shown-text.ts";
import { PackageFault, shown } from "./package-fault.ts";
import { versionOfPython } from "./python-names.ts";

const MOST_FIELDS = 1000;

export interface Metadata {
  /** As it is spelled there. */
  readonly name: string;
  /** As Python writes it. */
  readonly version: string;
  readonly summary: string | null;
  readonly license: string | null;
  readonly requiresPython: string | null;
  readonly repository: string | null;
  readonly readme: string | null;
}

/** Throws PackageFault. */
export function parseMetadata(text: string): Metadata {
  const end = /\r?\n\r?\n/.exec(text);
  const fields = fieldsOf((end === null ? text : text.slice(0, end.index)).trimEnd());
  const body = end === null ? "" : text.slice(end.index + end[0].length);
  const line = (field: string) => lineOf(field, fields.get(field)?.[0]);
  const [name, version] = [line("name"), line("version")];
  if (fields.get("metadata-version") === undefined) throw new PackageFault("METADATA has no Metadata-Version");
  if (name === null || !/^[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/.test(name)) {
    throw new PackageFault("METADATA: Name: must be letters, digits, dots, dashes and underscores");
  }
  if (version === null || versionOfPython(version) === null) {
    const rule = "must be up to three numbers, such as 1.2.0, with a1, b1 or rc1 for a pre-release";
    throw new PackageFault(`METADATA: Version: ${version ?? "is missing"}: ${rule}`);
  }
  const requiresPython = line("requires-python");
  if (requiresPython !== null && !/^[\d\s.,<>=!~*]+$/.test(requiresPython)) {
    throw new PackageFault(`METADATA: Requires-Python: ${requiresPython} is not a list of versions such as >=3.11`);
  }
  const license = line("license-expression") ?? line("license");
  const repository = addressIn(fields.get("project-url") ?? []) ?? line("home-page");
  const readme = body.trim() === "" ? null : body;
  return { name, version, summary: line("summary"), license, requiresPython, repository, readme };
}

/** Values by lower-case name. Lines that begin with a space continue the one before. */
function fieldsOf(head: string): ReadonlyMap<string, string[]> {
  const fields = new Map<string, string[]>();
  const lines = head.replaceAll(/\r?\n[ \t]+/g, " ").split(/\r?\n/);
  if (lines.length > MOST_FIELDS) throw new PackageFault(`METADATA has more than ${MOST_FIELDS} fields`);
  for (const line of lines) {
    const [, name, value] = /^([A-Za-z][\w-]*):[ \t]*(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new PackageFault(`METADATA: ${shown(line)} is not a field`);
    const key = name.toLowerCase();
    const values = fields.get(key) ?? [];
    values.push(value);
    fields.set(key, values);
  }
  return fields;
}

/** Null if it is missing or empty. Throws PackageFault. */
export function lineOf(field: string, value: string | undefined): string | null {
  const text = value?.trim() ?? "";
  if (text === "") return null;
  // Some have the whole text of the licence.
  const parsed = ShownText.safeParse(text.slice(0, LIMITS.publishedReasonCharacters));
  if (parsed.success) return parsed.data;
  throw new PackageFault(`METADATA: ${field}: ${parsed.error.issues[0]?.message}`);
}

/** Of `Repository, https://…`. */
function addressIn(urls: readonly string[]): string | null {
  for (const url of urls) {
    const [, label = "", address] = /^([^,]+),\s*(https?:\S+)$/.exec(url) ?? [];
    if (address !== undefined && /^(repository|source|source code|github)$/i.test(label.trim())) {
      return lineOf("project-url", address);
    }
  }
  return null;
}
