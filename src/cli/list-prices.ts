/** Prices of models at servers that sell them by the token, from the table of a pinned package, which is of its release. */
import { calcPrice } from "@pydantic/genai-prices";
import type { TokenPrices } from "../contract/judgement.ts";

/** The release of @pydantic/genai-prices in package.json. */
export const LIST_PRICES_AS_OF = "2026-09-23";

/** Few enough tokens for the lowest tier of a price that depends on the length of the prompt. */
const TOKENS = 1000;
const MICROS_A_TOKEN = 1_000_000;

/** Null if the table does not have the server or the model. */
export function listPrices(baseUrl: string, model: string): TokenPrices | null {
  const priced = priceOf(baseUrl, model);
  if (priced === null) return null;
  const micros = (dollars: number) => Math.round((dollars / TOKENS) * MICROS_A_TOKEN * MICROS_A_TOKEN);
  return { input_per_mtok_micros: micros(priced.input_price), output_per_mtok_micros: micros(priced.output_price) };
}

function priceOf(providerApiUrl: string, model: string) {
  const usage = { input_tokens: TOKENS, output_tokens: TOKENS };
  // Some prices depend on the time of day: noon is not the discount of the night.
  const timestamp = new Date(`${LIST_PRICES_AS_OF}T12:00:00Z`);
  return calcPrice(usage, model, { providerApiUrl, timestamp });
}
