/** Which models the platform sells: matched by model name and normalised address. */
import type { OfferedTokens, PriceList } from "../contract/money.ts";
import { placeOf } from "../kernel/kit/address.ts";
import type { UsedAt } from "../kernel/run/charges.ts";

/** Null if the platform does not sell that model at that address. */
export function offered({ models }: Pick<PriceList, "models">, used: UsedAt): OfferedTokens | null {
  const found = models.find((one) => isSameModel(one, used));
  if (found === undefined) return null;
  const { base_url: _, model: __, ...tokens } = found;
  return tokens;
}

export function isSameModel(one: UsedAt, other: UsedAt): boolean {
  return one.model === other.model && placeOf(one.base_url) === placeOf(other.base_url);
}
