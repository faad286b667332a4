/** Bindings that wrangler.toml does not require. Most are secrets. Each may be absent. */
interface __BaseEnv_Env {
  /** Further D1 databases, numbered from 1 without gaps. */
  [binding: `DB_${number}`]: D1Database | undefined;
  /**
   * Secrets that ROLLCALL_SECRET replaced: at most 4, separated by commas. They still decrypt; nothing new uses them.
   */
  ROLLCALL_SECRETS_BEFORE?: string;
  /** Set only to create a deployment's first key: `POST /v1/bootstrap` accepts it once. Remove it afterwards. */
  ROLLCALL_BOOTSTRAP_TOKEN?: string;
  /** Headers for the collector at `OTLP_ENDPOINT`, which identify the deployment: `name=value`, separated by commas. */
  OTLP_HEADERS?: string;
  /** A secret key of a Stripe account, and the signing secret of its webhook. Without both, payments are off. */
  STRIPE_SECRET_KEY?: string;
  STRIPE_WEBHOOK_SECRET?: string;
  /** The binding that sends e-mail about budgets (`send_email`), and the sender's address. */
  ALERTS?: SendEmail;
  ALERTS_FROM?: string;
  /** A run with more rollouts at once than this has gatherers; absent: 5000. For tests, which lower it. */
  GATHERED_ABOVE?: number;
}
