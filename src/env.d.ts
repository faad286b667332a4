/** Bindings that are secrets: set with `wrangler secret put`, made by the local platform at its first start. */
interface __BaseEnv_Env {
  /** 64 hex digits. Ids are signed and keys are sealed with keys derived from it. */
  ROLLCALL_SECRET: string;
  /** Secrets that ROLLCALL_SECRET took the place of, at most 4, with commas between them: still read, never written. */
  ROLLCALL_SECRETS_BEFORE?: string;
  /** Set for a deployment's first key, which `POST /v1/bootstrap` makes for it once, and removed after. */
  ROLLCALL_BOOTSTRAP_TOKEN?: string;
}
