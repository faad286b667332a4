/** `rollcall endpoint …`: named endpoints. A key is read from an environment variable, never from the command line. */

import type { EndpointCapabilities, EndpointView } from "../../contract/endpoint.ts";
import { COMMAND } from "../../local/package-root.ts";
import { defined, urlOf, variableNamedBy } from "../argument-values.ts";
import { type CommandLine, command, type Flags, PLATFORM_FLAGS } from "../command-line.ts";
import { ENDPOINT_PRESETS } from "../endpoint-presets.ts";
import { EXIT, usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { countText, dollarsText, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";
import { pricesOf } from "./prices-of.ts";

const HEADER = ["endpoint", "base url", "key", "supports", "id"];
const MODELS_SHOWN = 5;

/** The settings of an endpoint that can be given when it is added and changed later. */
const SETTING_FLAGS = {
  "base-url": { short: "b", value: "URL", help: "base URL, up to and including /v1" },
  "api-key-var": { short: "k", value: "VAR", help: "environment variable with its key, which is stored encrypted" },
  "max-concurrent": { value: "N", help: "concurrent rollouts on it" },
  rpm: { value: "N", help: "its limit of requests a minute" },
  "input-price": { value: "X", help: "dollars per million prompt tokens; with --output-price" },
  "output-price": { value: "X", help: "dollars per million completion tokens; with --input-price" },
  refuses: {
    value: "NAMES",
    help: 'what calls must omit, separated by commas: tools.strict, messages.MEMBER, streams, stream_options; "" for nothing',
  },
  "silence-limit": { value: "S", help: "seconds without a byte from it after which a call is lost" },
} as const satisfies Flags;

const FORGET_FLAGS = {
  "no-api-key": { help: "remove its key" },
  "no-max-concurrent": { help: "remove its limit of rollouts" },
  "no-rpm": { help: "remove its rate limit" },
  "no-prices": { help: "remove its prices" },
  "no-silence-limit": { help: "use the deployment's limit of silence" },
} as const satisfies Flags;

const ADD = command({
  name: "endpoint add",
  takes: "<name>",
  help: "create an endpoint and probe it",
  more: `One short call checks what it supports; an endpoint that does not answer is still created.
With --model the endpoint gets the list price of that model, if it is known; costs are counted by it.
The base URL and the variable of the key are known for ${Object.keys(ENDPOINT_PRESETS).join(", ")}:
for these the name is enough, such as: ${COMMAND} endpoint add openrouter -m qwen/qwen3-32b`,
  flags: {
    preset: {
      value: "SERVER",
      choices: Object.keys(ENDPOINT_PRESETS),
      help: "a known server, if the endpoint has another name",
    },
    ...SETTING_FLAGS,
    model: { short: "m", value: "NAME", help: "the model to probe; default the first that it lists" },
    "no-prices": { help: "set no list price" },
    "no-probe": { help: "skip the probe" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const name = line.one("the endpoint");
    const { base_url, ...rest } = { ...presetOf(line, name), ...settingsOf(line) };
    if (base_url === undefined) {
      const known = Object.keys(ENDPOINT_PRESETS).join(", ");
      throw usageError(`--base-url: is required, -b URL, or the name of a known server: ${known}`, "base-url");
    }
    const model = line.text("model");
    if (rest.prices !== undefined && line.on("no-prices")) {
      throw usageError("--no-prices: cannot be combined with --input-price and --output-price", "no-prices");
    }
    const isPriced = rest.prices !== undefined || line.on("no-prices");
    return onPlatform(line, async ({ client, signal, term }) => {
      const prices = isPriced || model === undefined ? null : await listPriceOf(base_url, model, term.log);
      const known = { ...(prices && { prices }), ...defined({ model }) };
      const request = { name, base_url, ...rest, ...known, probe: !line.on("no-probe") };
      const endpoint = await client.endpoints.create(request, { signal });
      return { json: endpoint, text: () => endpointText(endpoint) };
    });
  },
});

async function listPriceOf(baseUrl: string, model: string, log: (line: string) => void) {
  // The table has a megabyte.
  const { LIST_PRICES_AS_OF, listPrices } = await import("../list-prices.ts");
  const prices = listPrices(baseUrl, model);
  if (prices !== null) {
    log(`The prices are the list prices of ${model} as of ${LIST_PRICES_AS_OF}; endpoint update sets others.`);
  }
  return prices;
}

const LIST = command({
  name: "endpoint list",
  reads: true,
  help: "list the named endpoints",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.endpoints.list({}, { signal }));
      const none = `No endpoints. Create one with: ${COMMAND} endpoint add NAME -b URL, or the name of a known server`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const SHOW = question({
  name: "endpoint show",
  takes: "<endpoint>",
  reads: true,
  help: "show an endpoint and what it supports",
  what: "an endpoint",
  ask: (client, name, options) => client.endpoints.get(name, options),
  text: endpointText,
});

const UPDATE = command({
  name: "endpoint update",
  takes: "<endpoint>",
  help: "change only the given settings",
  flags: {
    name: { value: "NAME", help: "a new name" },
    ...SETTING_FLAGS,
    ...FORGET_FLAGS,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const endpointName = line.one("the endpoint");
    refuseOpposites(line);
    const patch = {
      ...defined({ name: line.text("name") }),
      ...settingsOf(line),
      ...(line.on("no-api-key") && { api_key: null }),
      ...(line.on("no-max-concurrent") && { max_concurrent: null }),
      ...(line.on("no-rpm") && { rpm: null }),
      ...(line.on("no-prices") && { prices: null }),
      ...(line.on("no-silence-limit") && { silence_limit_s: null }),
    };
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return onPlatform(line, async ({ client, signal }) => {
      const endpoint = await client.endpoints.update(endpointName, patch, { signal });
      return { json: endpoint, text: () => endpointText(endpoint) };
    });
  },
});

type Settings = CommandLine<keyof typeof SETTING_FLAGS>;

const OPPOSITES = [
  ["api-key-var", "no-api-key"],
  ["max-concurrent", "no-max-concurrent"],
  ["rpm", "no-rpm"],
  ["input-price", "no-prices"],
  ["silence-limit", "no-silence-limit"],
] as const;

function refuseOpposites(line: Settings & CommandLine<keyof typeof FORGET_FLAGS>): void {
  for (const [set, forget] of OPPOSITES) {
    if (line.text(set) === undefined || !line.on(forget)) continue;
    throw usageError(`--${forget}: cannot be combined with --${set}`, forget);
  }
}

/** The settings of a known server; empty if none is named, or its base URL is given. */
function presetOf(line: Settings & CommandLine<"preset">, name: string) {
  const named = line.text("preset");
  if (named !== undefined && line.text("base-url") !== undefined) {
    throw usageError("--preset: cannot be combined with --base-url", "preset");
  }
  const server = named ?? name;
  const preset = Object.hasOwn(ENDPOINT_PRESETS, server) ? ENDPOINT_PRESETS[server] : undefined;
  if (preset === undefined || line.text("base-url") !== undefined) return {};
  const api_key = process.env[preset.key] || undefined;
  if (api_key === undefined && preset.needsKey && line.text("api-key-var") === undefined) {
    throw usageError(`${server} needs a key: set ${preset.key}, or name another variable with -k VAR`, "api-key-var");
  }
  return defined({ base_url: preset.base_url, api_key, refuses: preset.refuses?.slice() });
}

/** Only the settings that were given; the others keep their default or their current value. */
function settingsOf(line: Settings) {
  return defined({
    base_url: urlOf("base-url", line.text("base-url")),
    api_key: variableNamedBy("api-key-var", line.text("api-key-var")),
    max_concurrent: line.count("max-concurrent", 1),
    rpm: line.count("rpm", 1),
    prices: pricesOf(line),
    refuses: line
      .text("refuses")
      ?.split(",")
      .map((name) => name.trim())
      .filter((name) => name !== ""),
    silence_limit_s: line.count("silence-limit", 1),
  });
}

const DELETE = question({
  name: "endpoint delete",
  takes: "<endpoint>",
  help: "delete an endpoint no unfinished run needs",
  what: "an endpoint",
  ask: (client, name, options) => client.endpoints.delete(name, options),
  text: ({ id }) => `Deleted ${id}`,
});

const PROBE = question({
  name: "endpoint probe",
  takes: "<endpoint>",
  help: "probe an endpoint again; exit 4 if it does not answer",
  what: "an endpoint",
  ask: (client, name, options) => client.endpoints.probe(name, options),
  text: endpointText,
  exit: ({ capabilities }) => (capabilities?.error ? EXIT.unreachable : EXIT.good),
});

function endpointText(endpoint: EndpointView): string {
  const { prices, capabilities } = endpoint;
  return safeDetails({
    endpoint: endpoint.name,
    id: endpoint.id,
    "base url": endpoint.base_url,
    key: keyText(endpoint) || null,
    "max concurrent": numberText(endpoint.max_concurrent),
    rpm: numberText(endpoint.rpm),
    prices:
      prices &&
      `${dollarsText(prices.input_per_mtok_micros)} in, ${dollarsText(prices.output_per_mtok_micros)} out, per million tokens`,
    supports: supportText(capabilities),
    refuses: endpoint.refuses.join(", ") || null,
    "silence limit": endpoint.silence_limit_s === null ? null : `${endpoint.silence_limit_s} s`,
    problem: capabilities?.error ?? null,
    models: capabilities && modelsText(capabilities),
    "context length": numberText(capabilities?.max_model_len ?? null),
    created: timeText(endpoint.created_at),
  });
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
  return all.flatMap(([name, there]) => (there ? [name] : [])).join(", ") || "nothing detected";
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

export const ENDPOINT_COMMANDS = [ADD, LIST, SHOW, UPDATE, DELETE, PROBE] as const;
