/** The part of the client that reads a long rollout a piece at a time. */
import type { Outline, RolloutHead, TurnPage, TurnTokenPage, WholeTurn } from "../contract/turns.ts";
import type { CallOptions, OutlineQuery, TokensQuery, TurnsQuery } from "./options.ts";
import { search } from "./requests.ts";
import { RolloutsClient } from "./rollouts-client.ts";

export class TurnsClient extends RolloutsClient {
  /** All of a rollout but its prompt, completion, turns and state; with the number of its turns. */
  getRolloutHead(rolloutId: string, options: CallOptions = {}): Promise<RolloutHead> {
    return this.requests.json(`${pathOf(rolloutId)}/head`, options);
  }

  /** A page of its turns with the beginning of each text: behind `after`, or the last ones before `before`. */
  listTurns(rolloutId: string, query: TurnsQuery = {}, options: CallOptions = {}): Promise<TurnPage> {
    return this.requests.json(`${pathOf(rolloutId)}/turns${search(query)}`, options);
  }

  /** One turn with all of its texts, by its number from 0. */
  getTurn(rolloutId: string, turn: number, options: CallOptions = {}): Promise<WholeTurn> {
    return this.requests.json(`${pathOf(rolloutId)}/turns/${turn}`, options);
  }

  /** Ids and logprobs of a turn, a page of them. Refused with `conflict` where the engine sent no ids. */
  getTurnTokens(
    rolloutId: string,
    turn: number,
    query: TokensQuery = {},
    options: CallOptions = {},
  ): Promise<TurnTokenPage> {
    return this.requests.json(`${pathOf(rolloutId)}/turns/${turn}/tokens${search(query)}`, options);
  }

  /** A page of its turns without their texts; goes on after `last_id`. */
  getOutline(rolloutId: string, query: OutlineQuery = {}, options: CallOptions = {}): Promise<Outline> {
    return this.requests.json(`${pathOf(rolloutId)}/outline${search(query)}`, options);
  }
}

function pathOf(rolloutId: string): string {
  return `/rollouts/${encodeURIComponent(rolloutId)}`;
}
