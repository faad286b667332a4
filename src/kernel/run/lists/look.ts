/** List queries about a run's rollouts, by name. */
import type { ListAnswer, ListAsk, ListQuestion } from "../../messages/rpc.ts";
import { groupRecord, groupSlice } from "./groups.ts";
import { binCounts, spreadOf } from "./histogram.ts";
import type { Listed } from "./listed.ts";
import { countMatches, rolloutSlice, taskTexts } from "./rollouts.ts";
import { rowSizes } from "./slice-size.ts";
import { searchedTexts } from "./texts.ts";
import { scoreNames } from "./values.ts";

const LOOKS: { readonly [Name in ListQuestion]: (listed: Listed, ask: ListAsk<Name>) => ListAnswer<Name> } = {
  rollouts: rolloutSlice,
  matches: countMatches,
  groups: groupSlice,
  group: groupRecord,
  spread: spreadOf,
  bins: binCounts,
  scoreNames: ({ store, sql }) => scoreNames(sql, store.head().finished),
  rowSizes,
  searched: searchedTexts,
  taskTexts,
};

export function lookAt<Name extends ListQuestion>(
  listed: Listed,
  question: Name,
  ask: ListAsk<Name>,
): ListAnswer<Name> {
  return LOOKS[question](listed, ask);
}
