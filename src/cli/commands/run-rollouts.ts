/** `rollcall run rollouts`: the rollouts of a run that match a filter, sorted by one of their numbers. */

import { LIMITS } from "../../contract/limits.ts";
import { stopText } from "../../contract/stop-text.ts";
import type { RolloutSummary } from "../../sdk/client.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { onPlatform } from "../on-platform.ts";
import { countText, durationText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";

const HEADER = ["rollout", "group", "task", "status", "reward", "turns", "tokens", "took", "stop or error"];
const SHOWN = 20;
const WIDEST = { task: 40 };

const ROLLOUTS = command({
  name: "run rollouts",
  takes: "<run>",
  reads: true,
  help: "list the rollouts of a run, filtered and sorted",
  more: "A filter is a list of terms: 'reward<0.5 error:provider -truncated:true \"text\"'. See docs/filter.md.",
  flags: {
    filter: { short: "f", value: "FILTER", help: "only rollouts that match" },
    sort: {
      short: "s",
      value: "FIELD",
      help: "sort by reward, turns, tokens, duration, a score, …; -reward: largest first",
    },
    limit: { value: "N", help: `maximum number; default ${SHOWN}` },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("a run");
    const limit = line.count("limit", 1) ?? SHOWN;
    const query = { filter: line.text("filter"), sort: line.text("sort"), matched: true };
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const first = await client.rollouts.list(
        id,
        { ...query, limit: Math.min(limit, LIMITS.rolloutsPerPage) },
        { signal },
      );
      const data = [...first.data];
      for (let page = first; page.has_more && page.last_id !== null && data.length < limit; ) {
        const room = Math.min(limit - data.length, LIMITS.rolloutsPerPage);
        page = await client.rollouts.list(
          id,
          { ...query, matched: false, after: page.last_id, limit: room },
          { signal },
        );
        data.push(...page.data);
      }
      const { matched, searched } = first;
      const json = { object: "list", data, has_more: data.length < (matched ?? 0), matched, searched };
      const none = "No rollout matches.";
      const text = () => {
        const said = [listText(data, { header: HEADER, rowOf, none, room, widest: WIDEST })];
        if (data.length < (matched ?? 0)) said.push(`${countText(data.length)} of ${countText(matched ?? 0)}`);
        if (searched !== null && searched.rollouts < searched.of) said.push(searchedText(searched));
        return said.join("\n\n");
      };
      return { json, text };
    });
  },
});

function searchedText({ rollouts, of }: { readonly rollouts: number; readonly of: number }): string {
  return `First prompts of ${countText(rollouts)} of ${countText(of)} ended rollouts have been searched so far: run the command again.`;
}

function rowOf(rollout: RolloutSummary): string[] {
  const { id, group, status, outcome, reward, turns, prompt_tokens, completion_tokens, duration } = rollout;
  const tokens = prompt_tokens === null ? null : prompt_tokens + (completion_tokens ?? 0);
  return [
    id,
    String(group),
    rollout.task_text ?? (rollout.task_key ?? "").slice(0, 8),
    outcome ?? (rollout.cancelling ? "cancelling" : status),
    reward === null ? "" : String(Number(reward.toFixed(4))),
    turns === null ? "" : countText(turns),
    tokens === null ? "" : countText(tokens),
    duration === null ? "" : durationText(duration),
    endText(rollout),
  ];
}

function endText({ reason, error, stop_condition }: RolloutSummary): string {
  const why = [reason, error?.message ?? null].filter((text) => text !== null);
  return why.length > 0 ? why.join(": ") : stopText(stop_condition ?? "");
}

export const RUN_ROLLOUTS_COMMANDS = [ROLLOUTS] as const;
