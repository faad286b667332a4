/** Bindings that are secrets: set with `wrangler secret put`, made by the local platform at its first start. */
interface __BaseEnv_Env {
  /** 64 hex digits. Ids are signed and keys are sealed with keys derived from it. */
  ROLLCALL_SECRET: string;
}
