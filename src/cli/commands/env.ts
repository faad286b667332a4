/** `rollcall env list | init | validate`. */
import type { EnvironmentView } from "../../contract/run.ts";
import { ARGS_FLAG, command, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT } from "../exit.ts";
import { gather, onPlatform } from "../on-platform.ts";
import { listText } from "../terminal/table.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { KINDS, makeEnvironment } from "./env-init.ts";

const JSON_FLAG = { json: PLATFORM_FLAGS.json };
const HEADER = ["environment", "version", "dataset", "args", "judges", "needs"];

const LIST = command({
  name: "env list",
  reads: true,
  help: "list the environments of a platform",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.environments.list({}, { signal }));
      const none = "This platform has no environments.";
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

function rowOf({ id, version, dataset, args, judges, needs }: EnvironmentView): string[] {
  return [id, version, dataset ?? "–", argsText(args), judges.join(", "), needs.join(", ")];
}

/** "max=99, steps": the names of the arguments of an environment, with their defaults. */
function argsText(schema: Readonly<Record<string, unknown>>): string {
  const properties = schema["properties"];
  if (typeof properties !== "object" || properties === null) return "";
  return Object.entries(properties).map(argText).join(", ");
}

function argText([name, schema]: [string, unknown]): string {
  if (typeof schema !== "object" || schema === null || !("default" in schema)) return name;
  return `${name}=${JSON.stringify(schema.default)}`;
}

const INIT = command({
  name: "env init",
  takes: "<name>",
  help: "create an environment in a new folder",
  flags: {
    kind: { value: "KIND", choices: KINDS, help: "the template; default single-turn" },
    ...JSON_FLAG,
  },
  run(line) {
    const name = line.one("the new environment");
    const kind = KINDS.find((known) => known === line.text("kind")) ?? "single-turn";
    const { id, folder, files } = makeEnvironment(name, kind, process.cwd());
    const next = [`cd ${id} && npm install`, "npm test", "npm run validate"];
    const text = `Made ${folder}: ${files.join(", ")}\n\nNext:\n  ${next.join("\n  ")}`;
    terminal(line.on("json")).print(text);
    if (line.on("json")) printJson({ name, kind, folder, files, next });
    return EXIT.good;
  },
});

const VALIDATE = command({
  name: "env validate",
  takes: "<./folder | name>",
  argument: "environment",
  help: "play an environment with simple policies and report its faults",
  flags: {
    examples: { value: "N", help: "tasks to play; default 20" },
    args: { ...ARGS_FLAG },
    dataset: { value: "FILE", help: "JSONL rows for an environment without rows" },
    ...JSON_FLAG,
  },
  run: async (line) => (await import("./env-validate.ts")).validateCommand(line),
});

export const ENV_COMMANDS = [LIST, INIT, VALIDATE] as const;
