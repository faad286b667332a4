/** Defines which test files run where, and which of them only `npm run test:all` runs. */

/** They run in Node and again inside workerd; `npm test` runs them only in Node. */
const PLATFORM_FREE = [
  "test/{contract,core}/**/*.test.ts",
  "packages/math-equivalence/test/**/*.test.ts",
  "test/conformance/vectors.test.ts",
  "environments/**/*.test.ts",
];
/** The kernel's clients call servers in Node. */
const CLIENTS = "test/kernel/clients/**/*.test.ts";
const PLATFORM = "{accounts,agents,billing,kernel,fleets,hub,retention,reviews,sharing,telemetry,triggers,webhooks}";
const INSTALLED = "**/node_modules/**";

export const NODE = {
  include: [
    ...PLATFORM_FREE,
    "packages/{policy,trainer}/test/**/*.test.ts",
    "test/benchmarks/recorded.test.ts",
    "test/{cli,cloud,conformance,examples,faults,ground,local,memory,packages,sdk}/**/*.test.ts",
    CLIENTS,
    `test/${PLATFORM}/**/*.node.test.ts`,
    "test/{quiet,web}/**/*.node.test.ts",
  ],
  exclude: [INSTALLED],
};

export const WORKERD = {
  include: [...PLATFORM_FREE, `test/${PLATFORM}/**/*.test.ts`],
  exclude: [INSTALLED, "**/*.node.test.ts", CLIENTS],
};

/**
 * Only in `npm run test:all`: whole sessions with commands, packages and platforms, and the examples of docs, whose
 * steps all have quicker tests; measurements of fairness; what computes for long; all environments in
 * isolates of their own; and all callers of all operations.
 */
export const AT_LENGTH = {
  node: [
    "test/agents/kills.node.test.ts",
    "test/cli/{commands,commands-doc,completion,deploy,deploy-page,env-init,env-validate,github-action}.test.ts",
    "test/cli/{newcomer,reading,start,stopping}.test.ts",
    "test/cloud/**/*.test.ts",
    "test/examples/**/*.test.ts",
    "test/faults/faults.test.ts",
    "test/local/{call-costs,cancel,declared-sql-class,ending-code,environment-package,kill,local-key,own-environment,reload-kill}.test.ts",
    "test/local/{isolated-poison,planted-secrets,poisoned,serve-watch,sign-in,without-slices}.test.ts",
    "test/memory/**/*.test.ts",
    "test/local/training/{agent,holdout,restarts,training}.test.ts",
    "test/packages/policy/{exact,pretraining}.test.ts",
    "test/sdk/sdk-doc.test.ts",
  ],
  workerd: [
    ...PLATFORM_FREE,
    "test/billing/month.test.ts",
    "test/hub/isolated-runs.test.ts",
    "test/kernel/dataset/fair-uploads.test.ts",
    "test/kernel/http/authorization.test.ts",
    "test/kernel/rollout/rollout-sql.test.ts",
    "test/kernel/run/platform-faults.test.ts",
    "test/kernel/scoring/fair-scoring.test.ts",
    "test/kernel/service/recomputed-export.test.ts",
  ],
};
