/** Which models the platform offers: known by their names and by where they are, however an address is written. */
import type { OfferedTokens, PriceList } from "../contract/money.ts";
import { placeOf } from "../kernel/kit/address.ts";
import type { UsedAt } from "../kernel/run/charges.ts";

/** Null where the platform does not offer that model at that address. */
export function offered({ models }: Pick<PriceList, "models">, used: UsedAt): OfferedTokens | null {
  const found = models.find((one) => isSameModel(one, used));
  if (found === undefined) return null;
  const { base_url: _, model: __, ...tokens } = found;
  return tokens;
}

export function isSameModel(one: UsedAt, other: UsedAt): boolean {
  return one.model === other.model && placeOf(one.base_url) === placeOf(other.base_url);
}
