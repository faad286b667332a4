/** Bindings beside those that wrangler.toml requires, most of them secrets: each may be absent. */
interface __BaseEnv_Env {
  /** Secrets that ROLLCALL_SECRET took the place of, at most 4, separated by commas: still read, never written. */
  ROLLCALL_SECRETS_BEFORE?: string;
  /** Set for a deployment's first key, which `POST /v1/bootstrap` makes for it once, and removed after. */
  ROLLCALL_BOOTSTRAP_TOKEN?: string;
  /** What the collector of `OTLP_ENDPOINT` is sent to know the deployment by: `name=value`, separated by commas. */
  OTLP_HEADERS?: string;
  /** A secret key of an account at Stripe, and the signing secret of its webhook: without both nobody pays here. */
  STRIPE_SECRET_KEY?: string;
  STRIPE_WEBHOOK_SECRET?: string;
  /** Sends e-mail about budgets (`send_email`), from this address. */
  ALERTS?: SendEmail;
  ALERTS_FROM?: string;
}
