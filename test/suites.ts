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
const PLATFORM = "{accounts,billing,kernel,fleets,retention,sharing,telemetry,triggers,webhooks}";
const INSTALLED = "**/node_modules/**";

export const NODE = {
  include: [
    ...PLATFORM_FREE,
    "packages/{policy,trainer}/test/**/*.test.ts",
    "test/{cli,conformance,examples,faults,ground,local,packages,sdk}/**/*.test.ts",
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
 * Only in `npm run test:all`: whole sessions with commands, packages and platforms, whose steps all have quicker tests,
 * and measurements of fairness.
 */
export const AT_LENGTH = {
  node: [
    "test/cli/{commands-doc,completion,deploy,deploy-page,env-init,env-validate,newcomer,reading,start,stopping}.test.ts",
    "test/faults/faults.test.ts",
    "test/local/{ending-code,environment-package,kill,local-key,own-environment,poisoned}.test.ts",
    "test/local/{serve-watch,sign-in,without-slices}.test.ts",
    "test/local/training/{holdout,restarts}.test.ts",
    "test/packages/policy/{exact,pretraining}.test.ts",
  ],
  workerd: [...PLATFORM_FREE, "test/kernel/scoring/fair-scoring.test.ts", "test/kernel/dataset/fair-uploads.test.ts"],
};
