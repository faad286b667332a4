/** Every size, count and time the platform refuses beyond, in one place. Bytes unless the name says otherwise. */
const KIB = 1024;
const MIB = 1024 * KIB;
const MINUTE = 60_000;

export const LIMITS = {
  /** Of one project, those that were deleted aside. */
  fleetsPerProject: 100,
  /** Replicas of one fleet. */
  fleetReplicas: 64,
  /** Addresses that are told of a project's events; names that one wants; how long two secrets sign. */
  webhooksPerProject: 20,
  webhookEvents: 32,
  webhookOverlapSeconds: 7 * 86_400,
  webhookSecrets: 5,
  /** A longer body of an event has no more than ids and where the rest is read. */
  webhookBodyBytes: 20_000,
  /** Deliveries that wait for one address: beyond either the oldest are dropped. */
  webhookBacklog: 10_000,
  webhookBacklogBytes: 16 * MIB,
  /** Deliveries that came to an end and are still in an address's log. */
  webhookLog: 1000,
  /** What is read of an answer, and kept of it. */
  webhookAnswerBytes: 64 * KIB,
  webhookAnswerCharacters: 500,
  webhookAttemptMs: 20_000,
  /** An environment's own state, as JSON, after each hook. */
  stateBytes: 256 * KIB,
  /** One SQLite row or value. Production refuses 2 MB, the local runtime does not: we refuse earlier, everywhere. */
  rowBytes: 1_900_000,
  toolResultBytes: 256 * KIB,
  /** A finished trajectory up to this travels with the report and waits in its run to be folded; a larger one is an R2 object of its own. */
  inlineTrajectoryBytes: 32 * KIB,
  /** Inline trajectories one answer between objects may carry. */
  inlinePageBytes: 8 * MIB,
  taskRowBytes: 4 * MIB,
  taskRowValues: 100_000,
  /** One reply of a model, a judge or an embedding model: its body, inflated. */
  completionBytes: 4 * MIB,
  /** Of what an endpoint refuses, by name. */
  refusedNames: 16,
  /** The same of a streamed reply, in which each token has a JSON object of its own. */
  streamedBytes: 32 * MIB,
  /** What is read of a reply that refuses a call. */
  refusalBytes: 64 * KIB,
  /** Milliseconds between two pieces of a body that has begun; of a request's body so many bytes must come in that time. */
  bodyPauseMs: MINUTE,
  bodyProgressBytes: 32 * KIB,
  /** In one reply of a model; more is an unusable reply, as is one that says it took more tokens. */
  toolCallsPerReply: 128,
  choicesPerReply: 128,
  tokensPerCall: 1_000_000_000,
  /** JSON values in the parts of its content, and in its list of reasoning. */
  valuesPerReply: 10_000,
  /** In one message of an MCP server. */
  valuesPerMessage: 100_000,
  /** Of one tool of an MCP server: its name and description, and its schema as JSON; a larger one is left out. */
  mcpToolBytes: 64 * KIB,
  /** What the turns of a rollout hold, as JSON in UTF-16 units; with more it is truncated, and scored. */
  rolloutCharacters: 16 * MIB,
  /** All running rollouts of a process together: their rows, prompts and turns. Others wait. */
  heldCharacters: 256 * MIB,
  /**
   * All large model replies of a process together, from their arrival until they are parsed; reading of others pauses. And
   * replies that may always finish, so that those which hold memory never wait for each other for good.
   */
  repliesCharacters: 64 * MIB,
  repliesToEnd: 4,
  /** Of trajectories that whoever scores holds at once, as JSON; one unit more than that is held by itself. */
  scoringCharacters: 32 * MIB,
  /** Each text of an error, and the errors of one list together: more is cut, and says so. */
  errorCharacters: 4096,
  errorListCharacters: 16 * KIB,
  /** Of a score, a metric, a stop condition, a handler. */
  nameCharacters: 200,
  /** Environments of a group, those of the groups in it included: each has figures of its own in every report and step. */
  groupMembers: 64,
  /** Scores of a rollout, and what they say of its turns, as JSON. */
  scoresCharacters: 64 * KIB,
  stepsCharacters: 512 * KIB,
  /** A judge's reply that is its verdict as it stands. */
  verdictCharacters: 32 * KIB,
  requestBodyBytes: 1 * MIB,
  /**
   * Memory of one process for such bodies while they come, and for the first 4 KiB of each; an organisation waits so long
   * for its part of that.
   */
  bodiesBytes: 24 * MIB,
  bodyBeginningsBytes: 8 * MIB,
  bodyWaitMs: 10_000,
  /** In a JSON body. */
  valuesPerRequest: 100_000,
  datasetBytes: 1024 * MIB,
  /** A multipart upload's parts, all but the last; R2 wants them of one size. */
  datasetPartBytes: 8 * MIB,
  /** At once in one process: each holds a part in memory. */
  uploadsAtOnce: 10,
  /** An uploaded file is read in blocks of whole rows, by one ranged get: at most so many rows, */
  datasetBlockRows: 256,
  /** and so many bytes, unless it is one longer row. */
  datasetBlockBytes: 1 * MIB,
  secretCharacters: 8192,
  /** A reply to `can.fetch`, and the milliseconds it may take at most, whatever its caller says. */
  fetchedBytes: 4 * MIB,
  fetchMs: 10 * MINUTE,
  /** One call of `can.sql`: its text, its parameters and its rows, the latter two as JSON. */
  sqlQueryBytes: 100_000,
  sqlParameterBytes: 256 * KIB,
  sqlResultBytes: 256 * KIB,
  sqlRows: 1000,
  /** Calls of one hook, which are kept until its outcome is stored. */
  sqlCallsPerHook: 1000,
  /** Work of a statement, estimated before it runs: a step is some 10 ns at most. Nobody else is answered meanwhile. */
  sqlStepsPerCall: 30_000_000,
  sqlStepsPerHook: 100_000_000,
  /** What SQLite itself refuses on the platform, and so in an author's tests: a value, a pattern of `like`, */
  sqlValueBytes: 9_000_000,
  sqlPatternBytes: 50,
  /** a program, columns, the depth of an expression, the parts of a union, the parameters, triggers in triggers. */
  sqlOps: 25_000,
  sqlColumns: 100,
  sqlDepth: 100,
  sqlUnions: 5,
  sqlParameters: 100,
  sqlTriggerDepth: 10,
  /** A rollout's database, the platform's own table included. */
  sqlDatabaseBytes: 64 * MIB,
  /** Failed model calls a rollout lists; the oldest go. */
  failedCallsListed: 100,
  /** Milliseconds environment code may take before its rollout ends: what a run may set itself is its default. */
  setupMs: 5 * MINUTE,
  /** For whoever waits for an environment to be built; no run sets it, since a build is every run's of its arguments. */
  buildMs: MINUTE,
  turnMs: 5 * MINUTE,
  toolMs: 2 * MINUTE,
  cleanupMs: 2 * MINUTE,
  /** All of what closes a rollout: whatever is left then has a second each. */
  closingMs: 10 * MINUTE,
  /** How long one call waits for an endpoint that is down, before it spends the tries it has left. */
  endpointWaitMs: 15 * MINUTE,
  /** Verdicts the functions of one rollout may ask for. */
  judgeAsksPerRollout: 64,
  /** One question to a judge: all its messages, or the two texts to compare. A longer one is not sent: the score is null. */
  askCharacters: 4 * MIB,
  /** All questions of one unit that are open at once; it asks the rest once those are answered. */
  unitAskCharacters: 16 * MIB,
  /** All open questions of a process; others wait. */
  askedCharacters: 64 * MIB,
  /** Less than a run waits before it sends a unit again. */
  scoringMs: 20_000,
  /** Of one organisation: hosts it lists, projects, members, keys that work, invitations that wait, budgets. */
  allowedHosts: 100,
  projects: 1000,
  members: 1000,
  keys: 1000,
  openInvitations: 1000,
  /** Of one key or person: browsers that are signed in, and codes that wait; where there are more, the oldest end. */
  sessionsPerCaller: 50,
  signInCodesPerCaller: 20,
  /** Links to the report of one run. */
  reportLinksPerRun: 100,
  budgets: 1000,
  /** Lists of prices that are to come. */
  comingPrices: 100,
  /** Keys and invitations of it that have ended and are still shown; those that ended first go. */
  endedAccounts: 1000,
  maxConcurrent: 10_000,
  groupSize: 1024,
  /** Of a training run: a group is scored, credited and stored as one. */
  trainingGroup: 400,
  batchRollouts: 65_536,
  holdoutTasks: 10_000,
  rolloutsPerRun: 1_000_000,
  /** A million dollars: every sum of it is exact. */
  maxCostMicros: 1_000_000_000_000,
  metadataPairs: 16,
  metadataKeyCharacters: 64,
  metadataValueCharacters: 512,
  /** Calls to other services one invocation may make (production stops at 10,000). */
  subrequests: 500,
  /** Connections one invocation may hold open at once (production stops at 6). */
  parallelFetches: 6,
  /** Rollouts one object plays at a time, as many as it may have connections; and in its life, since it keeps what they left. */
  rolloutsPerHost: 6,
  rolloutsPerHostInAll: 100,
  /** Objects one invocation may address, and rows or keys it may touch, before it yields to the next slice. */
  sliceObjects: 250,
  sliceRows: 1000,
  eventsPerRun: 10_000,
  /** Streams of events at once in one process. */
  streamsAtOnce: 1000,
  /** Changes an organisation's audit log keeps; the oldest go. About 0.5 kB each, indexes included. */
  auditEntries: 5_000_000,
  segmentRollouts: 100,
  /** Stored bytes of the trajectories on one page of results or exported rows, unless it is one longer row. */
  pageBytes: 16 * MIB,
  /** Such pages being made at once in one process, and how long another waits to be. */
  pagesAtOnce: 4,
  pageWaitMs: 10_000,
  /** Bytes of made pages that wait for their readers, and how long a page does so before another may take its room. */
  unreadBytes: 32 * MIB,
  unreadMs: 5000,
  resultsPerPage: 1000,
  /** Of one project. */
  triggersPerProject: 100,
  /** The run that a trigger begins, and its conditions, as JSON: pages of triggers show them whole. */
  triggerRunCharacters: 64 * KIB,
  triggerWhenCharacters: 16 * KIB,
  /** Turns on one page, and stored bytes of them, unless it is one longer turn; the same of a page of an outline. */
  turnsPerPage: 100,
  turnPageBytes: 4 * MIB,
  outlinePerPage: 5000,
  outlinePageBytes: 8 * MIB,
  /** What a page of turns shows of each text (UTF-16 units), and of each list in a turn. */
  shownCharacters: 10_000,
  shownItems: 100,
  /** Ids of one page of a turn's tokens. */
  tokensPerPage: 10_000,
  /** A filter over a run's rollouts: its text, its terms, and the values in all of them. */
  filterCharacters: 500,
  filterTerms: 20,
  filterValues: 40,
  /** Of a run's lists; each summary is of some kilobytes at most. */
  rolloutsPerPage: 500,
  groupsPerPage: 200,
  histogramBins: 30,
  histogramSteps: 500,
  groupMembersShown: 1024,
  /** Of a group's first prompt, what a search looks in, and the groups of a run whose prompt is kept for that. */
  searchedCharacters: 500,
  searchedGroups: 100_000,
  /** Paths in a trigger's map, conditions in its `when`, values allowed by one of those. */
  triggerPaths: 32,
  /** Deliveries of a trigger that wait for the run before them. */
  triggerWaiting: 100,
  /** Deliveries in a trigger's log, up to 50 more for a while; and beside them those that nobody signed. */
  deliveriesLogged: 1000,
  unsignedLogged: 100,
  /** How long, and how many, ids of deliveries are known again. */
  deliveryIdMs: 7 * 24 * 60 * MINUTE,
  deliveryIds: 100_000,
  /** Rollouts that the header of a page of exported rows names. */
  leftOutNamed: 20,
  /** Tokens of a batch, and of one of its objects, that are given in a trainer's own format; and bytes of one row, unzipped. */
  formattedTokens: 16 * MIB,
  formattedObjectTokens: 4 * MIB,
  formattedRowBytes: 32 * MIB,
  /** Credits that are held while a batch is given in a format. */
  formattedCreditBytes: 16 * MIB,
  /** Tokens of packed sequences that are begun and not whole. */
  packedTokens: 1 * MIB,
  /** Of a training run's series. */
  stepsPerPage: 1000,
  comparedPerPage: 1000,
} as const;
