/** What starting rollouts counts for their organisation, and what they are started with. */
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, MultiTurnEnv } from "../../../src/core/entry.ts";
import { PROCESS_SCHEDULER } from "../../../src/kernel/kit/fair-scheduler.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import type { GroupsMessage } from "../../../src/kernel/messages/wire.ts";
import { startGroups } from "../../../src/kernel/rollout/consume-groups.ts";
import { acceptedOnly, createLossy } from "../hand-made.ts";
import { openPlatform } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

test("a start message counts all its tasks, and waits for no scheduling turn if they are small", async () => {
  const platform = await openPlatform();
  const template = await platform.finish({ environment: "gsm8k", dataset: questions(3), model: script(RIGHT) });
  const row = await acceptedOnly(platform, template.id, { model: script(RIGHT) });
  await createLossy(platform, row);
  const [spend, charge] = [vi.spyOn(PROCESS_SCHEDULER, "spend"), vi.spyOn(PROCESS_SCHEDULER, "charge")];
  const rollouts: GroupsMessage["rollouts"] = [0, 1, 2].map((group) => [group, 0, 0] as const);
  const { scope } = platform;
  const message = { kind: "groups", scope, run_id: row.id, sent_at: Date.now(), rollouts } as const;
  const steps = await startGroups(env, message, Date.now(), new Subrequests());
  const charged = charge.mock.calls.flatMap(([org, of]) => (org === scope.orgId ? [of] : []));
  const waits = spend.mock.calls.some(([org, , goesFirst]) => org === scope.orgId && goesFirst === true);
  spend.mockRestore();
  charge.mockRestore();
  expect(waits).toBe(false);
  expect(charged).toContain(steps);
  // Reading any text counts at least 200.
  expect(steps).toBeGreaterThan(3 * 200);
  expect((await platform.ended(row.id)).counts).toMatchObject({ dispatched: 3, scored: 3 });
});

const Row = z.object({ question: z.string(), info: z.record(z.string(), z.string()).optional() });
/** How often the prompt of each question was made. */
const made = new Map<string, number>();
const prompting = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new MultiTurnEnv({
      dataset: dataset(Row, "uploaded"),
      maxTurns: 1,
      prompt: ({ question }) => {
        made.set(question, (made.get(question) ?? 0) + 1);
        return question;
      },
      setupState: ({ task }) => ({ frozen: Object.isFrozen(task) }),
      rubric: { rewards: { frozen: ({ state }) => Number(state.frozen) } },
    }),
});

test("an object plays a small task as the consumer made it, and makes a large one again", async () => {
  const { args, needs, load } = prompting;
  registerOnce({ id: "prompting", version: "1.0.0", digest: "sha256:prompting", args, needs, load });
  const platform = await openPlatform();
  const [small, large, informed] = [
    "Say anything.",
    `Say nothing.${" ".repeat(9000)}`,
    "Say it with its info.",
  ] as const;
  const rows = [{ question: small }, { question: large }, { question: informed, info: { text: " ".repeat(9000) } }];
  const run = await platform.finish({ environment: "prompting", dataset: rows, model: script(RIGHT) });
  expect(run.counts).toMatchObject({ scored: 3 });
  expect(run.report.reward?.mean).toBe(1);
  const times = made.get(small) ?? 0;
  expect(times).toBeGreaterThan(0);
  expect([made.get(large), made.get(informed)]).toEqual([times + 1, times + 1]);
});
