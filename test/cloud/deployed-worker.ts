/** A deployment that exists already and has an organisation: the Worker in a real workerd, behind a stub of Cloudflare. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStand } from "./stand.ts";
import { startWorker } from "./worker-platform.ts";

/** Closed at the end of the test. */
export async function openDeployed(secret: string) {
  const [stand, platform] = await Promise.all([openStand(), startWorker(secret)]);
  const key = await platform.found();
  const keep = (file: string, content: object) =>
    writeFileSync(join(stand.folder, file), JSON.stringify(content), { mode: 0o600 });
  keep("config.json", { profiles: { prod: { platform: platform.url, key, project: null } } });
  keep("rollcall.prod.secrets.json", { ROLLCALL_SECRET: secret });
  const deploy = (...words: string[]) =>
    stand.rollcall("deploy", "--name", "prod", "--url", platform.url, "--empty", ...words);
  return { ...stand, platform, key, client: platform.client(key), deploy };
}
