/** The turns of a rollout, to read a long one in pieces. */
import type { ShownTurn, TurnPage, TurnTokenPage, WholeTurn } from "../contract/turns.ts";
import type { CallOptions, TokensQuery, TurnsQuery } from "./options.ts";
import { type PagePromise, pathTo, search } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Turns extends Resource {
  /** Turns with the beginning of each text: those after `after`, or one page of the last ones before `before`. */
  list(rolloutId: string, query: TurnsQuery = {}, options: CallOptions = {}): PagePromise<ShownTurn, TurnPage> {
    const isLast = query.before !== undefined && query.after === undefined;
    return this.requests.pages(pathTo`/rollouts/${rolloutId}/turns`, query, options, ({ has_more, last_id }) => {
      return has_more && !isLast ? { after: last_id } : null;
    });
  }

  /** One turn with all of its texts, by its number from 0. */
  get(rolloutId: string, turn: number, options: CallOptions = {}): Promise<WholeTurn> {
    return this.requests.json(pathTo`/rollouts/${rolloutId}/turns/${turn}`, options);
  }

  /** One page of a turn's token ids and logprobs. Throws `conflict` if the engine sent no ids. */
  tokens(rolloutId: string, turn: number, query: TokensQuery = {}, options: CallOptions = {}): Promise<TurnTokenPage> {
    return this.requests.json(pathTo`/rollouts/${rolloutId}/turns/${turn}/tokens` + search(query), options);
  }
}
