/** The limits of the platform: sizes, counts and times. In bytes, unless the name has another unit. */
const KIB = 1024;
const MIB = 1024 * KIB;
const MINUTE = 60_000;

export const LIMITS = {
  /** Of one project, without deleted fleets. */
  fleetsPerProject: 100,
  /** Replicas of one fleet. */
  fleetReplicas: 64,
  /** Webhook endpoints of a project; event names of one; how long two of its secrets sign. */
  webhooksPerProject: 20,
  webhookEvents: 32,
  webhookOverlapSeconds: 7 * 86_400,
  webhookSecrets: 5,
  /** A longer body of an event is replaced by ids and the address to read the rest from. */
  webhookBodyBytes: 20_000,
  /** Deliveries that wait for one webhook endpoint: above either limit the oldest are dropped. */
  webhookBacklog: 10_000,
  webhookBacklogBytes: 16 * MIB,
  /** Finished deliveries that stay in the log of a webhook endpoint. */
  webhookLog: 1000,
  /** How much of a reply to a delivery is read, and how much is kept. */
  webhookAnswerBytes: 64 * KIB,
  webhookAnswerCharacters: 500,
  webhookAttemptMs: 20_000,
  /** An environment's own state, as JSON, after each hook. */
  stateBytes: 256 * KIB,
  /** A published environment: its npm package, that package unpacked, the files in it, its code, and its README. */
  publishedBytes: 4 * MIB,
  publishedUnpackedBytes: 12 * MIB,
  publishedFiles: 1000,
  publishedCodeBytes: 4 * MIB,
  publishedReadmeBytes: 256 * KIB,
  /** Schemas and needs of a version, as JSON. */
  publishedAboutCharacters: 64 * KIB,
  /** What npm clients read of a version's package.json, as JSON. */
  publishedNpmCharacters: 2 * KIB,
  /** What `npm publish` sends: a package in base64 and its package.json with its README. */
  publishedNpmBytes: 7 * MIB,
  publishedNameCharacters: 100,
  /** A name with its version, range or tag, in a request. */
  publishedNamed: 200,
  /** Rows of a list that have schemas and a record of a validation. */
  publishedPerPage: 20,
  /** Turns of a rollout while a version is validated, in characters. */
  validatedCharacters: 128 * KIB,
  publishedReasonCharacters: 500,
  /** Environments of one organisation, versions of one environment, and tags of one environment. */
  publishedEnvironments: 200,
  publishedVersions: 500,
  publishedTags: 50,
  /** Newest runs in the results of an environment; evals listed for each model; and arguments by which evals are grouped. */
  resultRuns: 200,
  resultEvalsListed: 5,
  resultArgsCharacters: 2000,
  /** Needs that a project grants to one environment. */
  grantedNeeds: 100,
  /** One SQLite row or value. Production refuses 2 MB, the local runtime does not: our limit is lower, in both. */
  rowBytes: 1_900_000,
  toolResultBytes: 256 * KIB,
  /**
   * A finished trajectory up to this size travels with the report and stays in its run until it is compacted; a larger
   * one is an R2 object of its own.
   */
  inlineTrajectoryBytes: 32 * KIB,
  /** The largest answer of a model that is kept for the same call at temperature 0, and for how long at most. */
  cachedAnswerBytes: 64 * KIB,
  answersKeptMs: 60 * 86_400_000,
  /** Inline trajectories in one reply between objects. */
  inlinePageBytes: 8 * MIB,
  taskRowBytes: 4 * MIB,
  taskRowValues: 100_000,
  /** One reply of a model, a judge or an embedding model: its body, inflated. */
  completionBytes: 4 * MIB,
  /** Names of request fields that an endpoint refuses. */
  refusedNames: 16,
  /** The same for a streamed reply, in which each token has its own JSON object. */
  streamedBytes: 32 * MIB,
  /** Memory of what is kept of a streamed reply, in characters: thousands of small values take much more than their text. */
  streamedCharacters: 64 * MIB,
  /** How much is read of a reply that refuses a call. */
  refusalBytes: 64 * KIB,
  /** The longest `silence_limit_s` of an endpoint, in seconds. */
  silenceLimitS: 3600,
  /** A call of a model or a judge that timed out is tried again at most this often: each try may cost a whole reply. */
  retriesAfterTimeout: 1,
  /** Milliseconds between two pieces of a body; a request's body must bring so many bytes in that time. */
  bodyPauseMs: MINUTE,
  bodyProgressBytes: 32 * KIB,
  /** Of one reply of a model. A reply with more is unusable, and so is one that reports more tokens. */
  toolCallsPerReply: 128,
  choicesPerReply: 128,
  tokensPerCall: 1_000_000_000,
  /** JSON values in the parts of its content, and in its list of reasoning. */
  valuesPerReply: 10_000,
  /** JSON values in one message of an MCP server. */
  valuesPerMessage: 100_000,
  /** Of one tool of an MCP server: its name and description, and its schema as JSON. A larger tool is left out. */
  mcpToolBytes: 64 * KIB,
  /**
   * The turns of a rollout, as JSON in UTF-16 units. A rollout with more is truncated, and scored. A deployment allows
   * less (`ROLLOUT_CHARACTERS`).
   */
  rolloutCharacters: 16 * MIB,
  /** The least memory, in MiB, that the large work of one isolate shares (`MEMORY_BUDGET_MIB`). */
  memoryBudgetMib: 48,
  /** Rollouts that are being started, with their rows and prompts; one larger rollout is started alone. */
  startedCharacters: 2 * MIB,
  /** Trajectories that scoring holds in memory at once, as JSON, unless a single scoring group has more. */
  scoringCharacters: 20 * MIB,
  /** Each text of an error, and all errors of one list together. Longer ones are cut, with a mark. */
  errorCharacters: 4096,
  errorListCharacters: 16 * KIB,
  /** Name of a score, a metric, a stop condition or a handler. */
  nameCharacters: 200,
  /** Environments of a group, including those of nested groups: each has its own figures in every report and step. */
  groupMembers: 64,
  /** The largest sampling ratio of a member in a training run. */
  memberRatio: 1_000_000,
  /** The scores of a rollout, and their notes on its turns, as JSON. */
  scoresCharacters: 64 * KIB,
  stepsCharacters: 512 * KIB,
  /** What is stored of the reply that a judgement was read from, including the mark of a cut. */
  judgeReplyCharacters: 4000,
  /** A judge's reply that is used as its judgement without extraction. */
  judgementCharacters: 32 * KIB,
  requestBodyBytes: 1 * MIB,
  /** A model call of an agent: the body of its request. */
  agentCallBytes: 8 * MIB,
  /** Calls of one rollout that wait for their answers. */
  agentCallsWaiting: 64,
  /** Of one call that an agent makes: its messages, its tools, and the parts of one message. */
  callMessages: 10_000,
  callTools: 1024,
  callParts: 1000,
  /**
   * Memory of one process for the first 4 KiB of each request body, which never wait for anything larger; and how long an
   * organisation waits for memory for the rest.
   */
  bodyBeginningsBytes: 4 * MIB,
  bodyWaitMs: 10_000,
  /** JSON values in a request body. */
  valuesPerRequest: 100_000,
  datasetBytes: 1024 * MIB,
  /** A dataset that is sent in one request: Cloudflare refuses longer bodies. A larger one is sent in parts. */
  datasetBodyBytes: 100_000_000,
  /**
   * Size of all parts of an upload but the last, when they are sent and when they are stored: R2 requires parts of
   * equal size, of at least 5 MiB.
   */
  datasetPartBytes: 5 * MIB,
  datasetParts: 205,
  /** Unfinished uploads of one organisation, and after how long an upload expires. */
  openUploads: 50,
  uploadMs: 7 * 24 * 60 * MINUTE,
  /** An uploaded file is read in blocks of whole rows, each by one ranged get: at most so many rows, */
  datasetBlockRows: 256,
  /** and so many bytes, unless one row is longer. */
  datasetBlockBytes: 1 * MIB,
  secretCharacters: 8192,
  /** A reply to `can.fetch`, and its maximal time in milliseconds, whatever timeout its caller sets. */
  fetchedBytes: 4 * MIB,
  fetchMs: 10 * MINUTE,
  /** Environment code in an isolate of its own: one reply, as JSON in UTF-16 units, and the JSON values in it. */
  isolateReplyCharacters: 16 * MIB,
  isolateReplyValues: 500_000,
  /** Its description: descriptions stay in memory. */
  isolateDescriptionCharacters: 256 * KIB,
  /** During one call of the code: its calls of the platform in all, those in progress, and their size together. */
  isolateCalls: 10_000,
  isolateCallsAtOnce: 1000,
  isolateCallCharacters: 16 * MIB,
  /** How long it may take to answer after its time is over. It normally answers at once, with the step that was late. */
  isolateGraceMs: 5000,
  /** Tools that it offers to the model. */
  isolateTools: 1024,
  /** One call of `can.sql`: its text, its parameters and its rows, the latter two as JSON. */
  sqlQueryBytes: 100_000,
  sqlParameterBytes: 256 * KIB,
  sqlResultBytes: 256 * KIB,
  sqlRows: 1000,
  /** SQL calls of one hook: they are kept until the hook's outcome is stored. */
  sqlCallsPerHook: 1000,
  /** Estimated work of a statement, before it runs: a step takes at most 10 ns. The process is blocked meanwhile. */
  sqlStepsPerCall: 30_000_000,
  sqlStepsPerHook: 100_000_000,
  /** SQLite's own limits on the platform, which an author's tests apply, too: a value, a pattern of `like`, */
  sqlValueBytes: 9_000_000,
  sqlPatternBytes: 50,
  /** a program, columns, the depth of an expression, the parts of a union, the parameters, triggers in triggers. */
  sqlOps: 25_000,
  sqlColumns: 100,
  sqlDepth: 100,
  sqlUnions: 5,
  sqlParameters: 100,
  sqlTriggerDepth: 10,
  /** A rollout's database, including the platform's own table. */
  sqlDatabaseBytes: 64 * MIB,
  /** Failed model calls that a rollout lists; the oldest are dropped. */
  failedCallsListed: 100,
  /** Milliseconds of environment code before its rollout ends. What a run may set is its default. */
  setupMs: 5 * MINUTE,
  /**
   * How long a caller waits until an environment is built. No run sets it, since all runs with its arguments share a
   * build.
   */
  buildMs: MINUTE,
  turnMs: 5 * MINUTE,
  toolMs: 2 * MINUTE,
  cleanupMs: 2 * MINUTE,
  /** All closing work of a rollout together: after it, each handler that is left has one second. */
  closingMs: 10 * MINUTE,
  /** How long one call waits for an endpoint that is down, before it uses its remaining attempts. */
  endpointWaitMs: 15 * MINUTE,
  /** Judgements that the functions of one rollout may request. */
  judgeAsksPerRollout: 64,
  /**
   * One question to a judge: all its messages, or the two texts to compare. A longer question is not sent: the score is
   * null.
   */
  askCharacters: 4 * MIB,
  /** All open questions of one scoring group; it sends the next ones after those are answered. */
  scoringGroupAskCharacters: 2 * MIB,
  /** Time to score a group; less than a run waits before it sends the group again. */
  scoringMs: 20_000,
  /** Of one organisation: allowed hosts, projects, members, active keys, open invitations, budgets. */
  allowedHosts: 100,
  projects: 1000,
  members: 1000,
  keys: 1000,
  openInvitations: 1000,
  /** Of one key or person: signed-in browsers, and unused sign-in codes. Above the limit, the oldest end. */
  sessionsPerCaller: 50,
  signInCodesPerCaller: 20,
  /** Links to the report of one run. */
  reportLinksPerRun: 100,
  /** Reviews of one rollout and of one run; the texts of one review, and how many scores it gives. */
  reviewsPerRollout: 20,
  reviewsPerRun: 10_000,
  reviewNoteCharacters: 2000,
  reviewValues: 20,
  /** Runs whose agreement one request reads. */
  agreementRuns: 100,
  /** Reviews on one page of results or exported rows, in characters, unless one row has more. */
  pageReviewCharacters: 2 * MIB,
  /** Labels that a person gives in place of a judge's. */
  reviewLabelCharacters: 200,
  /** Rollouts that the agreement of a run names for each score and judge. */
  disagreementsShown: 20,
  budgets: 1000,
  /** Lists of prices with a future start. */
  comingPrices: 100,
  /** Ended keys and invitations that are still shown; those that ended first are dropped. */
  endedAccounts: 1000,
  maxConcurrent: 50_000,
  groupSize: 1024,
  /** Rollouts of a training run's group: it is scored, credited and stored as one. */
  trainingGroup: 400,
  batchRollouts: 65_536,
  /** Tokens of a row that its reference is asked about: the reply has at most about 256 bytes for each. */
  referenceTokens: 16_384,
  /**
   * Rollouts of a group with a reference, and rows of it that are asked about: a consumer reads each trajectory and each
   * answer in one invocation.
   */
  referenceGroup: 100,
  referenceRows: 200,
  /** Tokens of a model's vocabulary, in a filter of rollouts. */
  vocabulary: 16 * MIB,
  holdoutTasks: 10_000,
  /** Evals of one training run that have intervals of their own. */
  trainingEvals: 16,
  rolloutsPerRun: 1_000_000,
  /** A million dollars: all sums up to it are exact. */
  maxCostMicros: 1_000_000_000_000,
  metadataPairs: 16,
  metadataKeyCharacters: 64,
  metadataValueCharacters: 512,
  /** Calls to other services one invocation may make (production stops at 10,000). */
  subrequests: 500,
  /** Calls of one invocation that may wait for the headers of their replies at once (production stops at 6). */
  parallelFetches: 6,
  /**
   * Rollouts that one shard plays at a time if its model streams, chosen in docs/cost.md; and in its whole life, since
   * it keeps their results.
   */
  rolloutsPerShard: 24,
  rolloutsPerShardInAll: 100,
  /** Rollouts of a run with a cap that run at once while the cost of one is unknown. */
  rolloutsTried: 6,
  /**
   * Objects that one invocation may address, and rows or keys that it may read or write, before it continues in the
   * next slice.
   */
  sliceObjects: 250,
  sliceRows: 1000,
  eventsPerRun: 10_000,
  /** Event streams at once in one process. */
  streamsAtOnce: 1000,
  /** Entries of an organisation's audit log; the oldest are dropped. About 0.5 kB each, including indexes. */
  auditEntries: 5_000_000,
  segmentRollouts: 100,
  /** Stored bytes of the trajectories on one page of results or exported rows, unless one row is longer. */
  pageBytes: 12 * MIB,
  /** The longest wait of a page or an upload for memory. */
  pageWaitMs: 10_000,
  /** A finished page that waits longer than this for its reader may lose its memory to another page. */
  unreadMs: 5000,
  resultsPerPage: 1000,
  /** Triggers of one project. */
  triggersPerProject: 100,
  /** The shortest time between two starts of a schedule. */
  scheduleMinutes: 5,
  /** The run that a trigger creates, and its conditions, as JSON: pages of triggers show them whole. */
  triggerRunCharacters: 64 * KIB,
  triggerWhenCharacters: 16 * KIB,
  /** Turns on one page, and their stored bytes, unless one turn is longer; the same for a page of an outline. */
  turnsPerPage: 100,
  turnPageBytes: 4 * MIB,
  outlinePerPage: 5000,
  outlinePageBytes: 8 * MIB,
  /** How much of each text (UTF-16 units), and of each list in a turn, a page of turns shows. */
  shownCharacters: 10_000,
  shownItems: 100,
  /** Token ids on one page of a turn's tokens. */
  tokensPerPage: 10_000,
  /** A filter over a run's rollouts: its text, its terms, and the values in all terms. */
  filterCharacters: 500,
  filterTerms: 20,
  filterValues: 40,
  /** Pages of a run's lists; each summary has a few kilobytes at most. */
  rolloutsPerPage: 500,
  groupsPerPage: 200,
  histogramBins: 30,
  histogramSteps: 500,
  groupMembersShown: 1024,
  /** How much of a group's first prompt is searched, and for how many groups of a run that prompt is kept. */
  searchedCharacters: 500,
  searchedGroups: 100_000,
  /** Paths in a trigger's map, conditions in its `when`, values allowed by one of those. */
  triggerPaths: 32,
  /** Deliveries of a trigger that wait for the previous run to end. */
  triggerWaiting: 100,
  /** Deliveries in a trigger's log (up to 50 more for a while), and besides them those without a valid signature. */
  deliveriesLogged: 1000,
  unsignedLogged: 100,
  /** How long, and how many, delivery ids are remembered to detect repeats. */
  deliveryIdMs: 7 * 24 * 60 * MINUTE,
  deliveryIds: 100_000,
  /** Rollouts that the header of a page of exported rows lists as left out. */
  leftOutNamed: 20,
  /**
   * Tokens of a batch, and of one of its objects, that can be read in a trainer's own format; and bytes of one row,
   * unzipped.
   */
  formattedTokens: 16 * MIB,
  formattedObjectTokens: 4 * MIB,
  formattedRowBytes: 32 * MIB,
  /** Credits held in memory while a batch is written in a format. */
  formattedCreditBytes: 16 * MIB,
  /** Tokens of packed sequences that are not yet full. */
  packedTokens: 1 * MIB,
  /** Pages of a training run's series. */
  stepsPerPage: 1000,
  comparedPerPage: 1000,
  /** Baselines that a run is compared with at once. */
  comparedBaselines: 7,
} as const;
