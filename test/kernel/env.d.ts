/** What the tests in workerd have bound besides the deployment's own bindings. */
declare namespace Cloudflare {
  interface Env {
    TEST_MIGRATIONS: import("cloudflare:test").D1Migration[];
    /** The scripted model, up to and including /v1. */
    MODEL_URL: string;
    /** A shop behind MCP (test/fakes/mcp-shop.ts). */
    MCP_URL: string;
    /** Cloudflare Access (test/fakes/access-team.ts). */
    ACCESS_URL: string;
    /** Collectors of spans (test/fakes/otlp-collector.ts). */
    COLLECTOR_URL: string;
    /** The network past Miniflare's outbound Worker; and the same where only public addresses may be called. */
    OPEN_NETWORK: Fetcher;
    PUBLIC_NETWORK: Fetcher;
  }
}
