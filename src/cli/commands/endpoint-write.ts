/** `rollcall endpoint add | update`. A key is read from a variable, never from the command line. */
import type { EndpointPatch, EndpointRequestInput } from "../../contract/endpoint.ts";
import { urlOf, variableNamedBy } from "../argument-values.ts";
import { type CommandLine, readCommandLine } from "../command-line.ts";
import { ENDPOINT_ADD, ENDPOINT_UPDATE } from "../commands.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { endpointText } from "./endpoint.ts";

const MICROS_PER_DOLLAR = 1e6;

export function endpointAddCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ENDPOINT_ADD, argv);
  const name = line.one("the endpoint");
  const { base_url, ...rest } = given(line);
  if (base_url === undefined) throw usageError("--base-url: say where it is with -b URL", "base-url");
  const model = line.text("model");
  const request: EndpointRequestInput = {
    name,
    base_url,
    ...rest,
    ...(model !== undefined && { model }),
    probe: !line.on("no-probe"),
  };
  return onPlatform(line, async ({ client, signal, answer }) => {
    const endpoint = await client.createEndpoint(request, { signal });
    answer(endpoint, () => endpointText(endpoint));
    return EXIT.good;
  });
}

export function endpointUpdateCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ENDPOINT_UPDATE, argv);
  const endpointName = line.one("the endpoint");
  const name = line.text("name");
  refuseBoth(line);
  const patch: EndpointPatch = {
    ...(name !== undefined && { name }),
    ...given(line),
    ...(line.on("no-api-key") && { api_key: null }),
    ...(line.on("no-max-concurrent") && { max_concurrent: null }),
    ...(line.on("no-rpm") && { rpm: null }),
    ...(line.on("no-prices") && { prices: null }),
  };
  if (Object.keys(patch).length === 0) throw usageError("name what is to change: see --help");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const endpoint = await client.updateEndpoint(endpointName, patch, { signal });
    answer(endpoint, () => endpointText(endpoint));
    return EXIT.good;
  });
}

const OPPOSITES = [
  ["api-key-var", "no-api-key"],
  ["max-concurrent", "no-max-concurrent"],
  ["rpm", "no-rpm"],
  ["input-price", "no-prices"],
] as const;

function refuseBoth(line: CommandLine<keyof typeof ENDPOINT_UPDATE.flags>): void {
  for (const [set, forget] of OPPOSITES) {
    if (line.text(set) === undefined || !line.on(forget)) continue;
    throw usageError(`--${forget}: not beside --${set}`, forget);
  }
}

type Settings = CommandLine<keyof typeof ENDPOINT_ADD.flags & keyof typeof ENDPOINT_UPDATE.flags>;

/** Only what was given: what was not keeps its default, or stays as it is. */
function given(line: Settings) {
  const base_url = urlOf("base-url", line.text("base-url"));
  const api_key = variableNamedBy("api-key-var", line.text("api-key-var"));
  const max_concurrent = line.count("max-concurrent", 1);
  const rpm = line.count("rpm", 1);
  const prices = pricesOf(line);
  return {
    ...(base_url !== undefined && { base_url }),
    ...(api_key !== undefined && { api_key }),
    ...(max_concurrent !== undefined && { max_concurrent }),
    ...(rpm !== undefined && { rpm }),
    ...(prices !== undefined && { prices }),
  };
}

function pricesOf(line: Settings) {
  const input = microsOf(line, "input-price");
  const output = microsOf(line, "output-price");
  if (input === undefined && output === undefined) return undefined;
  if (input === undefined || output === undefined) {
    const missing = input === undefined ? "input-price" : "output-price";
    throw usageError(`--${missing}: prices come in pairs`, missing);
  }
  return { input_per_mtok_micros: input, output_per_mtok_micros: output };
}

function microsOf(line: Settings, flag: "input-price" | "output-price"): number | undefined {
  const dollars = line.number(flag);
  if (dollars === undefined) return undefined;
  if (dollars < 0) throw usageError(`--${flag}: must not be negative`, flag);
  return Math.round(dollars * MICROS_PER_DOLLAR);
}
