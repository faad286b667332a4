/** Bindings that are secrets, beside those that wrangler.toml requires: each may be absent. */
interface __BaseEnv_Env {
  /** Set for a deployment's first key, which `POST /v1/bootstrap` makes for it once, and removed after. */
  ROLLCALL_BOOTSTRAP_TOKEN?: string;
}
