/** `rollcall env publish | pull | install`: packages of environments, to and from a platform. */

import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { LIMITS } from "../../contract/limits.ts";
import { type PublishedVersion, VISIBILITIES } from "../../contract/published-environment.ts";
import { COMMAND } from "../../local/package-root.ts";
import { readReadyFile, stateDirectory } from "../../local/state-directory.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { environmentArgs } from "../argument-values.ts";
import { ARGS_FLAG, type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import { CommandError, EXIT, failedOn, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { LOCAL } from "../profiles.ts";
import { bytesText } from "../terminal/format.ts";
import { safeText } from "../terminal/text.ts";
import { namedPlatform } from "../which-platform.ts";
import { publishedName, validationText } from "./env-hub.ts";

const PUBLISH_FLAGS = {
  visibility: {
    value: "WHO",
    choices: VISIBILITIES,
    help: "who can use a new environment; default private, and it does not change",
  },
  tag: { value: "TAG", help: "a tag to point to this version, besides latest" },
  "allow-failing": { help: "publish it although its validation fails; its page shows this for ever" },
} as const;

type PublishLine = CommandLine<keyof typeof PUBLISH_FLAGS | keyof typeof PLATFORM_FLAGS | "owner" | "args">;

const PUBLISH = command({
  name: "env publish",
  takes: "[folder or wheel]",
  argument: "file",
  help: "publish a version of an environment for others to use",
  more: `The version is that of package.json, and never changes. The package has the files that npm pack takes and the bundled code, at most ${LIMITS.publishedBytes / 2 ** 20} MiB. The platform validates it before it is published. A Python environment is a wheel, dist/….whl: it has the version in its METADATA, and is not played.`,
  flags: {
    owner: { value: "NAME", help: "the name of your organisation; default: the scope in package.json's name" },
    ...PUBLISH_FLAGS,
    args: { ...ARGS_FLAG, help: "arguments with which it is validated: JSON, a JSON file, or k=v" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const [folder = ".", ...more] = line.positionals;
    if (more.length > 0) throw usageError("only one folder can be published at once");
    if (folder.endsWith(".whl")) return publishWheel(line, resolve(folder));
    const given = line.all("args");
    const args = given.length === 0 ? undefined : environmentArgs(given);
    return onPlatform(line, async ({ client, signal, term, flags }) => {
      const { packEnvironment } = await import("../hub/pack-environment.ts");
      term.log(`Packing ${resolve(folder)}`);
      const packed = await packEnvironment(resolve(folder), { owner: line.text("owner"), args });
      const { id, bytes, files, commit } = packed;
      const from = commit === null ? "" : `, commit ${commit}`;
      term.log(`Publishing ${id}: ${files} files, ${bytesText(bytes.byteLength)}${from}`);
      term.log("The platform plays it with simple policies first: this can take a minute.");
      const version = await client.environments.publish(bytes, { ...publicationOf(line), signal });
      const next = [
        `${COMMAND} env show ${version.id}${flags}`,
        `${COMMAND} eval ${version.id} -m MODEL -b URL${flags}`,
      ];
      return { json: { ...version, next }, text: () => publishedText(version, next) };
    });
  },
});

function publishWheel(line: PublishLine, path: string) {
  if (line.all("args").length > 0) throw usageError("--args: cannot be used with a wheel, which is not played", "args");
  const bytes = readWheel(path);
  return onPlatform(line, async ({ client, signal, term, flags }) => {
    const file = basename(path);
    term.log(`Publishing ${file}: ${bytesText(bytes.byteLength)}`);
    const wheel = { file, owner: line.text("owner"), ...publicationOf(line) };
    const version = await client.environments.publish(bytes, { ...wheel, signal });
    const next = [`${COMMAND} env show ${version.id}${flags}`];
    return { json: { ...version, next }, text: () => publishedText(version, next) };
  });
}

function readWheel(path: string): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(readFileSync(path));
  } catch (error) {
    throw usageError(`${path} cannot be read: ${error instanceof Error ? error.message : error}`, "file");
  }
}

function publicationOf(line: CommandLine<keyof typeof PUBLISH_FLAGS>) {
  const visibility = VISIBILITIES.find((known) => known === line.text("visibility"));
  // Absent, not false: that is the platform's default.
  return { visibility, tag: line.text("tag"), allowFailing: line.on("allow-failing") || undefined };
}

function publishedText(version: PublishedVersion, next: readonly string[]): string {
  const { id, visibility, digest } = version;
  const list = next.map((line) => `\n  ${line}`).join("");
  return `Published ${id} (${visibility})\n${digest}\n\n${validationText(version)}\n\nNext:${list}`;
}

const PULL = command({
  name: "env pull",
  takes: "<owner/name[@version]> [folder]",
  argument: "environment",
  reads: true,
  help: "download the files of a published environment into a new folder",
  more: "The folder is ./name, if none is given. It must not exist, or be empty.",
  flags: PLATFORM_FLAGS,
  run(line) {
    const [given = "", to, ...more] = line.positionals;
    if (more.length > 0) throw usageError("one environment and one folder are expected");
    const { name, version: wanted } = publishedName(given);
    const folder = resolve(to ?? name.split("/")[1] ?? name);
    return onPlatform(line, async ({ client, signal, term }) => {
      const { downloadPackage, filesIn, publishedVersion, refuseUsedFolder, writeFiles } = await import(
        "../hub/package-files.ts"
      );
      refuseUsedFolder(folder);
      const version = await publishedVersion(client, wanted === null ? name : `${name}@${wanted}`, signal);
      warnAbout(version, term.log);
      const files = await filesIn(version, await downloadPackage(client, version, signal));
      writeFiles(files, folder);
      const { id, digest } = version;
      const json = { object: "pulled_environment", id, digest, folder, files: [...files.keys()] };
      return { json, text: () => safeText(`${id}: ${files.size} files in ${folder}`) };
    });
  },
});

function warnAbout({ id, yanked, deprecated }: PublishedVersion, log: (line: string) => void): void {
  if (yanked !== null) log(safeText(`${id} was yanked: ${yanked.reason}`));
  if (deprecated !== null) log(safeText(`${id} is deprecated: ${deprecated}`));
}

const INSTALL = command({
  name: "env install",
  takes: "<owner/name[@version]>",
  argument: "environment",
  help: "copy a published version from another platform to this one",
  more: "The copy has the same name, version and digest, and is validated again. If your organisation on this platform has published before, its owner name must be the same.",
  flags: {
    from: { value: "PROFILE", help: "profile of the platform to copy from, or local" },
    ...PUBLISH_FLAGS,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const { name, version: wanted } = publishedName(line.one("one environment"));
    const from = line.text("from");
    if (from === undefined) throw usageError("--from: the profile of the platform to copy from is required", "from");
    return onPlatform(line, async ({ client, signal, term }) => {
      const source = await download(from, wanted === null ? name : `${name}@${wanted}`, signal);
      warnAbout(source.version, term.log);
      term.log(`Publishing ${source.version.id} here, with the digest ${source.version.digest}`);
      const { file } = source.version.package;
      const wheel = file !== undefined && { file, owner: name.split("/")[0] };
      const version = await client.environments.publish(source.bytes, { ...publicationOf(line), ...wheel, signal });
      if (version.digest !== source.version.digest) {
        const message = `${version.id} has the digest ${version.digest} here, and ${source.version.digest} at ${from}`;
        throw new CommandError(EXIT.bad, { code: "conflict", message, type: "package_error" });
      }
      return {
        json: version,
        text: () => safeText(`Installed ${version.id} (${version.visibility})\n${version.digest}`),
      };
    });
  },
});

/** A version and its package, from the platform of a profile. */
async function download(profile: string, id: string, signal: AbortSignal) {
  const { downloadPackage, publishedVersion } = await import("../hub/package-files.ts");
  const { client, url } = await platformOf(profile);
  try {
    const version = await publishedVersion(client, id, signal);
    return { version, bytes: await downloadPackage(client, version, signal) };
  } catch (thrown) {
    throw failedOn({ url, profile }, thrown);
  }
}

async function platformOf(profile: string): Promise<{ readonly client: RollcallClient; readonly url: string }> {
  const { RollcallClient } = await import("../../sdk/client.ts");
  const named = namedPlatform({ profile });
  if (named !== null && named !== LOCAL) {
    const { url, key: apiKey, project } = named;
    return { client: new RollcallClient({ baseUrl: url, apiKey, project }), url };
  }
  const ready = readReadyFile(stateDirectory(process.env));
  if (ready === null) throw usageError(`--from: no local platform is running: start it with ${COMMAND} serve`, "from");
  return { client: new RollcallClient({ baseUrl: ready.url, apiKey: ready.key }), url: ready.url };
}

export const ENV_PUBLISH_COMMANDS = [PUBLISH, PULL, INSTALL] as const;
