/** What starting rollouts counts for their organisation. */
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { PROCESS_SCHEDULER } from "../../../src/kernel/kit/fair-scheduler.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import type { GroupsMessage } from "../../../src/kernel/messages/wire.ts";
import { startGroups } from "../../../src/kernel/rollout/consume-groups.ts";
import { acceptedOnly, createLossy } from "../hand-made.ts";
import { openPlatform } from "../platform.ts";
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
