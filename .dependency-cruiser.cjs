/**
 * Who may import whom. One way only, type imports included, no cycles.
 * A folder imports itself and what its row lists; a package is imported only by the folders that own it.
 */
const LAYERS = {
  "src/contract": [],
  "src/core": ["src/contract", "packages/math-equivalence"],
  environments: ["src/contract", "src/core"],
  "src/kernel": ["src/contract", "src/core", "environments"],
  "src/sdk": ["src/contract"],
  "src/local": ["src/contract", "src/core", "packages/policy"],
  "src/cli": [
    ...["src/contract", "src/core", "environments", "src/sdk", "src/local"],
    ...["packages/policy", "packages/trainer"],
  ],
  "src/web": ["src/contract", "src/sdk"],
  "packages/math-equivalence": [],
  "packages/policy": ["src/contract"],
  "packages/trainer": ["src/contract", "src/core", "src/sdk", "packages/policy"],
};

/** The ground of the kernel: each knows nothing else of it. */
const GROUND = ["src/kernel/db", "src/kernel/clients"];

/** The modules of the kernel, from the ground up: each imports the ground, itself and those before it. */
const MODULES = [
  ...["messages", "kit", "environment", "dataset", "endpoint", "account", "run"],
  ...["trajectory", "trainer", "scoring", "rollout", "service"],
].map((folder) => `src/kernel/${folder}`);
/** The API: it imports the modules and the database. */
const HTTP = "src/kernel/http";

/**
 * Modules inside the module of the run: each may import the run and is imported by those above it. The run itself imports none of
 * them but in `object.ts`, which puts all together: they register with its accounting.
 */
const INSIDE_RUN = ["judging", "training", "lists"].map((folder) => `src/kernel/run/${folder}`);

/** Programs of their own next to the platform; each ships, and runs in Node. packages/math-equivalence runs in the Worker as well. */
const PROGRAMS = ["packages/policy", "packages/trainer"];

/**
 * Slices: parts of the platform that the rest does without. Each may import the rest, and no other slice. Only
 * src/slices.ts and the Worker's entry import a slice; commands, SDK and page know the wire types of each.
 */
const SLICES = [
  "src/accounts",
  "src/agents",
  "src/backup",
  "src/billing",
  "src/fleets",
  "src/hub",
  "src/operator",
  "src/retention",
  "src/reviews",
  "src/sharing",
  "src/telemetry",
  "src/triggers",
  "src/webhooks",
];
const BELOW_SLICES = ["src/contract", "src/core", "src/kernel"];
const CLIENTS = ["src/sdk", "src/cli", "src/web"];
/** The classes of environments, and what runs their hooks and rubrics in this isolate. */
const CODE_OF_ENVIRONMENTS =
  "^src/core/(protocol/in-process|environments/(any-environment|environment|env-group)|rollout/(harness|play)|rubrics/(rubric|scoring))[.]ts$";
/** Where tables of D1 are defined. */
const TABLES = "^src/(kernel/db/schema|[^/]+/tables)[.]ts$";
const SLICE_WIRE = "^src/(accounts|agents|backup|billing|fleets|operator|reviews|sharing|triggers|webhooks)/wire[.]ts$";
/** The package entry `rollcall/contract`: it puts together what the contract and slices have of the wire. */
const WIRE = "^src/wire[.]ts$";

const OWNERS = {
  // The domain, and the edges that parse: HTTP bodies, files of the state directory, command lines.
  zod: ["src/contract", "src/core", "environments", "src/kernel/http", ...SLICES, "src/local", "src/cli", ...PROGRAMS],
  "@cfworker/json-schema": ["src/core"],
  "fastest-levenshtein": ["src/core"],
  re2js: ["src/core"],
  stemmer: ["src/core"],
  jsonrepair: ["src/core", "src/kernel/clients"],
  "@msgpack/msgpack": ["src/core"],
  "@modelcontextprotocol/client": ["src/core"],
  "drizzle-orm": ["src/kernel/db", ...SLICES],
  openai: ["src/kernel/clients"],
  croner: ["src/triggers"],
  "csv-parse": ["src/cli"],
  stripe: ["src/billing"],
  hono: ["src/kernel/http", "src/accounts"],
  jose: ["src/accounts"],
  standardwebhooks: ["src/kernel/kit", ...SLICES],
  "@jax-js/jax": ["packages/trainer"],
  ...Object.fromEntries(
    [
      ...["react", "react-dom", "uplot", "react-markdown", "remark-gfm", "remark-math", "rehype-katex"],
      ...["@tanstack/react-router", "@tanstack/react-query", "@tanstack/react-table", "@tanstack/react-virtual"],
    ].map((name) => [name, ["src/web"]]),
  ),
  diff: ["src/cli", "src/web"],
  hyparquet: ["src/cli"],
  miniflare: ["src/local"],
  wrangler: ["src/local"],
  esbuild: ["src/local"],
};

const PRODUCT = "^(src|packages|environments)/";
/** Tests in the folder of what they test may use Node and the test runner; they are never bundled. */
const TESTS_OF_PACKAGES = "^packages/[^/]+/test/";
const TESTS = ["[.]test[.]ts$", TESTS_OF_PACKAGES];
/** Not by the name of a package. */
const BY_PATH = { dependencyTypes: ["local"], dependencyTypesNot: ["aliased"] };
/** The files that package.json opens to importers. */
const INTERFACES = Object.values(require("./package.json").exports).map((file) => `^${file.slice(2)}$`);

const folders = (paths) => paths.map((path) => `^${path}/`);

const layers = Object.entries(LAYERS).map(([folder, imports]) => ({
  name: `${folder} imports`,
  severity: "error",
  from: { path: `^${folder}/` },
  to: {
    path: PRODUCT,
    pathNot: [
      ...folders([folder, ...imports]),
      ...(CLIENTS.includes(folder) ? [SLICE_WIRE, WIRE] : []),
      ...(PROGRAMS.includes(folder) ? [WIRE] : []),
    ],
  },
}));

const slices = SLICES.map((slice) => ({
  name: `${slice} imports`,
  severity: "error",
  from: { path: `^${slice}/` },
  to: { path: PRODUCT, pathNot: folders([slice, ...BELOW_SLICES]) },
}));

/** What a folder of the kernel imports of the kernel. */
const KERNEL = [
  ...GROUND.map((folder) => [folder, [folder]]),
  ...MODULES.map((folder, floor) => [folder, [...GROUND, ...MODULES.slice(0, floor + 1)]]),
  [HTTP, [HTTP, "src/kernel/db", ...MODULES]],
];
const kernel = KERNEL.map(([folder, imports]) => ({
  name: `${folder} imports`,
  severity: "error",
  from: { path: `^${folder}/` },
  to: { path: "^src/kernel/", pathNot: folders(imports) },
}));

const owners = Object.entries(OWNERS).map(([name, owning]) => ({
  name: `${name} owner`,
  severity: "error",
  from: { path: PRODUCT, pathNot: [...folders(owning), TESTS_OF_PACKAGES] },
  to: { path: `(^|node_modules/)${name}(/|$)` },
}));

module.exports = {
  forbidden: [
    { name: "no cycles", severity: "error", from: {}, to: { circular: true } },
    ...layers,
    ...slices,
    {
      name: "the list of slices imports",
      severity: "error",
      from: { path: "^src/slices?(-services)?[.]ts$" },
      to: { path: PRODUCT, pathNot: [...folders([...MODULES, HTTP, ...SLICES]), "^src/kernel/db/slice-tables[.]ts$"] },
    },
    {
      name: "the entry of the wire imports",
      severity: "error",
      from: { path: WIRE },
      to: { path: PRODUCT, pathNot: ["^src/contract/", SLICE_WIRE] },
    },
    ...kernel,
    {
      name: "the ground of the kernel knows no environment",
      severity: "error",
      from: { path: folders(GROUND) },
      to: { path: "^environments/" },
    },
    {
      name: "the kernel calls environments by their interface",
      comment:
        "src/core/protocol/environment-code.ts: the code may run in another isolate. One file connects the code in this one.",
      severity: "error",
      from: { path: folders(["src/kernel", ...SLICES]), pathNot: "^src/kernel/environment/environments[.]ts$" },
      to: { path: CODE_OF_ENVIRONMENTS },
    },
    ...owners,
    {
      name: "the run imports no module inside it",
      severity: "error",
      from: { path: "^src/kernel/run/", pathNot: [...folders(INSIDE_RUN), "^src/kernel/run/object[.]ts$"] },
      to: { path: folders(INSIDE_RUN) },
    },
    ...INSIDE_RUN.map((folder) => ({
      name: `${folder} imports`,
      severity: "error",
      from: { path: `^${folder}/` },
      to: { path: folders(INSIDE_RUN), pathNot: `^${folder}/` },
    })),
    {
      name: "queries are scoped",
      comment:
        "src/kernel/db/scoped.ts alone reaches D1 and limits each statement to its owner's rows; the root has operators only.",
      severity: "error",
      from: { path: PRODUCT, pathNot: ["^src/kernel/db/scoped[.]ts$", TABLES] },
      to: { path: "(^|node_modules/)drizzle-orm/", pathNot: "(^|node_modules/)drizzle-orm/index[.]" },
    },
    {
      name: "the schema reaches no database",
      severity: "error",
      from: { path: TABLES },
      to: { path: "(^|node_modules/)drizzle-orm/", pathNot: "(^|node_modules/)drizzle-orm/(index[.]|sqlite-core/)" },
    },
    {
      name: "the Worker's entry imports",
      comment: "src/index.ts joins the objects and the app, nothing else.",
      severity: "error",
      from: { path: "^src/index[.]ts$" },
      to: {
        path: PRODUCT,
        pathNot: [...folders([...MODULES, HTTP, ...SLICES]), "^src/slices?(-services)?[.]ts$"],
      },
    },
    {
      name: "cloudflare: owner",
      severity: "error",
      from: { path: PRODUCT, pathNot: ["^src/index[.]ts$", ...folders([...MODULES, ...SLICES])] },
      to: { path: "^cloudflare:" },
    },
    {
      name: "node: owner",
      severity: "error",
      from: {
        path: PRODUCT,
        pathNot: [...folders(["src/local", "src/cli", ...PROGRAMS]), "^src/kernel/kit/secrets[.]ts$", ...TESTS],
      },
      to: { dependencyTypes: ["core"], pathNot: "^cloudflare:" },
    },
    {
      name: "secrets use node:crypto alone",
      comment: "Ids are signed by the thousand: a synchronous HMAC, which WebCrypto has not.",
      severity: "error",
      from: { path: "^src/kernel/kit/secrets[.]ts$" },
      to: { dependencyTypes: ["core"], pathNot: "^(node:)?crypto$" },
    },
    {
      name: "environments use the public entry",
      comment: "An environment is a package of its own: inside or outside, it knows only `rollcall`.",
      severity: "error",
      from: { path: "^environments/[^/]+/", pathNot: TESTS },
      to: { path: "^src/(contract|core)/", pathNot: "^src/core/(entry|testing)[.]ts$" },
    },
    {
      name: "a package imports others by name",
      comment:
        "A path from a package to outside of its folder would not hold where the package is installed by itself.",
      severity: "error",
      from: { path: "^packages/([^/]+)/" },
      to: { ...BY_PATH, pathNot: "^packages/$1/" },
    },
    {
      name: "packages are imported by name",
      severity: "error",
      from: { pathNot: "^packages/" },
      to: { ...BY_PATH, path: "^packages/" },
    },
    {
      name: "packages use the public interfaces of the product",
      comment: "What package.json exports, and nothing behind it.",
      severity: "error",
      from: { path: "^packages/" },
      to: { path: "^src/", pathNot: INTERFACES },
    },
    {
      name: "every folder has a row",
      comment: "A new folder under src is added to LAYERS, one of the kernel to MODULES, before it imports anything.",
      severity: "error",
      from: {
        path: "^(src|packages)/",
        pathNot: [
          ...folders([
            ...Object.keys(LAYERS).filter((folder) => folder !== "src/kernel"),
            ...KERNEL.map(([folder]) => folder),
          ]),
          ...folders(SLICES),
          "^src/(index|slices|slice-services|wire)[.]ts$",
          "[.]d[.]ts$",
        ],
      },
      to: {},
    },
    {
      name: "the product stands alone",
      comment: "What ships imports no tests, benchmarks or build scripts.",
      severity: "error",
      from: { path: PRODUCT },
      to: { path: "^(test|bench|scripts)/" },
    },
    {
      name: "imports resolve",
      severity: "error",
      from: {},
      to: { couldNotResolve: true, pathNot: "^cloudflare:" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["workerd", "import", "types", "default"],
    },
  },
};
