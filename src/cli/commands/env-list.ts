/** `rollcall env list`. */
import type { EnvironmentView } from "../../contract/run.ts";
import { readCommandLine } from "../command-line.ts";
import { ENV_LIST } from "../commands.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { gather, onPlatform } from "../on-platform.ts";
import { listText } from "../terminal/table.ts";

const HEADER = ["environment", "version", "dataset", "args", "judges", "needs"];

export function envListCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ENV_LIST, argv);
  line.none();
  return onPlatform(line, async ({ client, signal, term: { room }, answer }) => {
    const page = await gather(inOrder(await client.environments({ signal })));
    const none = "This platform has no environments.";
    answer(page, () => listText(page.data, { header: HEADER, rowOf, none, room }));
    return EXIT.good;
  });
}

async function* inOrder<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

function rowOf({ id, version, dataset, args, judges, needs }: EnvironmentView): string[] {
  return [id, version, dataset ?? "–", argsText(args), judges.join(", "), needs.join(", ")];
}

/** "max=99, steps": the names an environment takes, with their defaults. */
function argsText(schema: Readonly<Record<string, unknown>>): string {
  const properties = schema["properties"];
  if (typeof properties !== "object" || properties === null) return "";
  return Object.entries(properties).map(argText).join(", ");
}

function argText([name, schema]: [string, unknown]): string {
  if (typeof schema !== "object" || schema === null || !("default" in schema)) return name;
  return `${name}=${JSON.stringify(schema.default)}`;
}
