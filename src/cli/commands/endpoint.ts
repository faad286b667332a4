/** `rollcall endpoint list | show | delete | probe`, and how an endpoint reads. */
import type { EndpointCapabilities, EndpointView } from "../../contract/endpoint.ts";
import { readCommandLine } from "../command-line.ts";
import { ENDPOINT_DELETE, ENDPOINT_LIST, ENDPOINT_PROBE, ENDPOINT_SHOW } from "../commands.ts";
import { EXIT, type ExitCode } from "../exit.ts";

import { gather, onPlatform } from "../on-platform.ts";
import { countText, timeText } from "../terminal/format.ts";
import { details, listText } from "../terminal/table.ts";
import { safeLine } from "../terminal/text.ts";

const HEADER = ["endpoint", "base url", "key", "supports", "id"];
const MODELS_SHOWN = 5;

export function endpointListCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ENDPOINT_LIST, argv);
  line.none();
  return onPlatform(line, async ({ client, signal, term: { room }, answer }) => {
    const page = await gather(client.endpoints({}, { signal }));
    const none = "No endpoints. Name one with: rollcall endpoint add NAME -b URL";
    answer(page, () => listText(page.data, { header: HEADER, rowOf, none, room }));
    return EXIT.good;
  });
}

export function endpointShowCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ENDPOINT_SHOW, argv);
  const name = line.one("an endpoint");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const endpoint = await client.getEndpoint(name, { signal });
    answer(endpoint, () => endpointText(endpoint));
    return EXIT.good;
  });
}

export function endpointDeleteCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ENDPOINT_DELETE, argv);
  const name = line.one("an endpoint");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const deleted = await client.deleteEndpoint(name, { signal });
    answer(deleted, () => `Deleted ${deleted.id}`);
    return EXIT.good;
  });
}

export function endpointProbeCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ENDPOINT_PROBE, argv);
  const name = line.one("an endpoint");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const endpoint = await client.probeEndpoint(name, { signal });
    answer(endpoint, () => endpointText(endpoint));
    return endpoint.capabilities?.error ? EXIT.unreachable : EXIT.good;
  });
}

export function endpointText(endpoint: EndpointView): string {
  const { prices, capabilities } = endpoint;
  const fields = {
    endpoint: endpoint.name,
    id: endpoint.id,
    "base url": endpoint.base_url,
    key: keyText(endpoint) || null,
    "max concurrent": numberText(endpoint.max_concurrent),
    rpm: numberText(endpoint.rpm),
    prices:
      prices &&
      `${dollars(prices.input_per_mtok_micros)} in, ${dollars(prices.output_per_mtok_micros)} out, for a million tokens`,
    supports: supportText(capabilities),
    problem: capabilities?.error ?? null,
    models: capabilities && modelsText(capabilities),
    "context length": numberText(capabilities?.max_model_len ?? null),
    created: timeText(endpoint.created_at),
  };
  const safe = Object.entries(fields).map(([name, value]) => [name, value && safeLine(value)]);
  return details(Object.fromEntries(safe));
}

function rowOf(endpoint: EndpointView): string[] {
  return [
    endpoint.name,
    endpoint.base_url,
    keyText(endpoint),
    endpoint.capabilities?.error ?? supportText(endpoint.capabilities),
    endpoint.id,
  ];
}

function supportText(capabilities: EndpointCapabilities | null): string {
  if (capabilities === null) return "not probed";
  const { chat, usage, logprobs, token_ids, tools } = capabilities;
  const all = Object.entries({ chat, usage, logprobs, "token ids": token_ids, tools });
  return all.flatMap(([name, there]) => (there ? [name] : [])).join(", ") || "nothing seen";
}

function modelsText({ models }: EndpointCapabilities): string | null {
  if (models.length === 0) return null;
  const more = models.length - MODELS_SHOWN;
  return models.slice(0, MODELS_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function keyText({ api_key_last4 }: EndpointView): string {
  return api_key_last4 === null ? "" : `…${api_key_last4}`;
}

function numberText(number: number | null): string | null {
  return number === null ? null : countText(number);
}

function dollars(micros: number): string {
  return `$${(micros / 1e6).toLocaleString("en-US", { maximumFractionDigits: 6 })}`;
}
