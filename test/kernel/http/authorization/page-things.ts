/** Codes, sessions and links of a tenant. */
import { env } from "cloudflare:workers";
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { apiKeys, signInCodes, type WebSessionRow, webSessions } from "../../../../src/accounts/tables.ts";
import { mintToken } from "../../../../src/core/ids.ts";
import { minting, sha256Hex } from "../../../../src/kernel/kit/secrets.ts";
import { CreatedReportLink } from "../../../../src/sharing/wire.ts";
import type { TestApi } from "../../platform.ts";

const LONG = { created_at: 1, expires_at: 4_000_000_000_000 };
const minted = (kind: "rks" | "rkc") => mintToken(kind, minting(env, 0));

/** A code of the key. */
export async function newCode({ scope }: TestApi, key_id: string): Promise<string> {
  const code = minted("rkc");
  const of = { org_id: scope.orgId, project_id: scope.projectId, key_id };
  await drizzle(env.DB)
    .insert(signInCodes)
    .values({ ...of, ...LONG, hash: sha256Hex(code) });
  return code;
}

/** A session of the key; its id. */
export async function newSession({ scope }: TestApi, key_id: string): Promise<string> {
  const id = `ses_${crypto.randomUUID()}`;
  const of = { org_id: scope.orgId, project_id: scope.projectId, key_id };
  await drizzle(env.DB)
    .insert(webSessions)
    .values({ ...of, ...LONG, id, hash: id });
  return id;
}

/** The cookie of a browser that is signed in with this key. */
export async function cookieOf(key: string, changes: Partial<WebSessionRow> = {}): Promise<string> {
  const d1 = drizzle(env.DB);
  const [owner] = await d1
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.hash, sha256Hex(key)));
  if (owner === undefined) throw new Error("nobody has this key");
  const { org_id, project_id, id: key_id } = owner;
  const token = minted("rks");
  const row = { id: `ses_${crypto.randomUUID()}`, org_id, project_id, key_id, hash: sha256Hex(token), ...LONG };
  await d1.insert(webSessions).values({ ...row, ...changes });
  return `__Host-rollcall=${token}`;
}

export async function newReportLink(api: TestApi, run: string) {
  const reply = await api.post(`/v1/runs/${run}/report-links`, {});
  const { id, url } = CreatedReportLink.parse(await reply.json());
  return { report_link: id, report_token: url?.split("#").at(-1) ?? "" };
}
