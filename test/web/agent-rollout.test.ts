/** The rollout of an agent that has two conversations, of which one is not trained. */
import { expect, test } from "vitest";
import { CreatedRollout } from "../../src/agents/wire.ts";
import { textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

async function post(url: string, key: string, body: object, headers: Record<string, string> = {}): Promise<string> {
  const sent = { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers };
  const response = await fetch(url, { method: "POST", headers: sent, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}

async function playedRollout(): Promise<string> {
  const body = { row: { question: "?" }, model: "old", endpoint: { base_url: stage.model } };
  const created = CreatedRollout.parse(JSON.parse(await post(`${stage.url}/v1/rollouts`, stage.key, body)));
  if (created.rollout === null) throw new Error("the rollout still waits");
  const { base_url, key, rollout_id } = created.rollout;
  const say = (messages: object[], headers = {}) =>
    post(`${base_url}/chat/completions`, key, { model: "old", messages }, headers);
  await say([user("item 2")]);
  await say([user("you are the user: item 3")], { "x-rollcall-train": "false" });
  await say([user("item 2"), assistant("It is answer 2."), user("item 4")]);
  await post(`${stage.url}/v1/rollouts/${rollout_id}/finish`, key, { rewards: { solved: 1 } });
  return rollout_id;
}

test("a turn names the earlier turn that it continues, and one that is not trained says so", async () => {
  const { page, wrong } = await tabAt(`/rollouts/${await playedRollout()}`);
  const heads = page.locator("article.turn .turn-head");
  await heads.nth(2).waitFor();
  const texts = [await textOf(heads.nth(0)), await textOf(heads.nth(1)), await textOf(heads.nth(2))];
  expect(texts.map((text) => text.includes("not trained"))).toEqual([false, true, false]);
  expect(texts[1]).toContain("keeps 0 messages");
  expect(texts[2]).toContain("keeps 2 messages of turn 1");
  expect(wrong).toEqual([]);
});
