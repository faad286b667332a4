/**
 * A backup and a restore are killed after each kind of request that they make, before they get the reply, and are then
 * repeated. The end is always the same as without a kill.
 */
import { expect, test } from "vitest";
import { type BackupStand, makeHistory, openBackupStand, seenBy } from "../cloud/backup-stand.ts";

/** After the first request of each kind, and after the last one. */
function cutsOf(seen: readonly string[], kindOf: (request: string) => string): { kind: string; nth: number }[] {
  const kinds = seen.map(kindOf);
  return [...new Set(kinds)].flatMap((kind) => {
    const times = kinds.filter((one) => one === kind).length;
    return [...new Set([1, times])].map((nth) => ({ kind, nth }));
  });
}

function killAtNth(
  stand: BackupStand,
  at: Parameters<BackupStand["killAt"]>[0],
  { kind, nth }: { readonly kind: string; readonly nth: number },
  kindOf: (request: string) => string,
): void {
  let left = nth;
  stand.killAt(at, (request) => {
    if (kindOf(request) === kind) left -= 1;
    return left === 0;
  });
}

const inStore = (request: string) => request.replace(/blobs\/.*/, "blobs");

test("a backup and a restore that are killed at any step are finished by the same commands", async () => {
  const stand = await openBackupStand();
  const prod = await stand.deployment("prod");
  const { key, ended } = await makeHistory(prod);
  const before = await seenBy(prod, key, ended);
  const whole = await stand.backUp("prod");
  expect([whole.code, whole.stderr]).toEqual([0, expect.any(String)]);
  const stored = cutsOf(stand.store.seen, inStore);
  expect(stored.length).toBeGreaterThan(4);
  for (const cut of stored) {
    stand.store.objects.clear();
    killAtNth(stand, stand.store, cut, inStore);
    expect((await stand.backUp("prod")).code, JSON.stringify(cut)).toBe(null);
    const kept = stand.store.objects.size;
    const again = await stand.backUp("prod");
    expect([again.code, again.stderr], JSON.stringify(cut)).toEqual([0, expect.any(String)]);
    // The state of the unfinished run may have changed.
    expect(JSON.parse(again.stdout).found, JSON.stringify(cut)).toBeGreaterThanOrEqual(Math.max(0, kept - 6));
  }

  const trial = await stand.deployment("trial");
  expect((await stand.restore("trial")).code).toBe(0);
  const written = cutsOf(
    trial.seen.filter((request) => request.includes("/operator/")),
    String,
  );
  await trial.stop();
  expect(written.length).toBeGreaterThanOrEqual(10);
  for (const [number, cut] of written.entries()) {
    const next = await stand.deployment(`next${number}`);
    killAtNth(stand, next, cut, String);
    expect((await stand.restore(`next${number}`)).code, JSON.stringify(cut)).toBe(null);
    const again = await stand.restore(`next${number}`);
    expect([again.code, again.stderr], JSON.stringify(cut)).toEqual([0, expect.any(String)]);
    expect(await seenBy(next, key, ended), JSON.stringify(cut)).toEqual(before);
    await next.stop();
  }
});
