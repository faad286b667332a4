/** Bindings of the tests in workerd, besides the deployment's own. */
declare namespace Cloudflare {
  interface Env {
    TEST_MIGRATIONS: import("cloudflare:test").D1Migration[];
    /** URL of the scripted model, up to and including /v1. */
    MODEL_URL: string;
    /** URL of a shop behind MCP (test/fakes/mcp-shop.ts). */
    MCP_URL: string;
    /** URL of a fake Cloudflare Access (test/fakes/access-team.ts). */
    ACCESS_URL: string;
    /** URL of collectors of spans (test/fakes/otlp-collector.ts). */
    COLLECTOR_URL: string;
    /** The network without Miniflare's outbound Worker; and the same with only public addresses permitted. */
    OPEN_NETWORK: Fetcher;
    PUBLIC_NETWORK: Fetcher;
  }
}
