/** The exports of `rollcall` for authors of environments. */

export { extractBoxedAnswer, extractMarkedAnswer, extractToldNumber, readNumber } from "@rollcall/math-equivalence";
export {
  BrowserSandboxError,
  EnvError,
  InfraError,
  KeyError,
  OverlongPromptError,
  RolloutError,
  SandboxError,
  SqlWorkError,
  ToolCallError,
  ToolError,
  ToolParseError,
  TunnelError,
  ValueError,
} from "../contract/errors.ts";
export { parseDigits } from "../contract/exact-json.ts";
export type { Json, JsonObject } from "../contract/json.ts";
export {
  type ContentPart,
  type Message,
  type Messages,
  type ToolCall,
  type ToolDefinition,
  textOf,
} from "../contract/messages.ts";
export type { AnyEnvironment } from "./environments/any-environment.ts";
export type {
  AnyTool,
  Call,
  Capabilities,
  LiveState,
  Need,
  RewardArgs,
  RolloutFields,
  ScoringArgs,
  Sql,
  State,
  ToolArgs,
} from "./environments/contract.ts";
export { dataset } from "./environments/dataset.ts";
export { defineEnvironment, type EnvironmentLoader } from "./environments/define-environment.ts";
export { EnvGroup } from "./environments/env-group.ts";
export { Environment, MultiTurnEnv, SingleTurnEnv } from "./environments/environment.ts";
export { MCPEnv } from "./environments/mcp-env.ts";
export type { CleanupOptions, StopOptions } from "./environments/stops.ts";
export { inject, tool } from "./environments/tool.ts";
export { StatefulToolEnv, ToolEnv } from "./environments/tool-env.ts";
export { extractHashAnswer, MaybeThinkParser, Parser, ThinkParser } from "./parsers/parser.ts";
export { withoutThoughts } from "./parsers/thoughts.ts";
export { XMLParser } from "./parsers/xml-parser.ts";
export { GroupJudgeRubric } from "./rubrics/group-judge-rubric.ts";
export { fenced, JudgeRubric } from "./rubrics/judge-rubric.ts";
export { MathRubric } from "./rubrics/math-rubric.ts";
export { Rubric, RubricGroup } from "./rubrics/rubric.ts";
export { commonSubsequence } from "./rubrics/scorers/common-subsequence.ts";
export { SCORER_NAMES, scorers } from "./rubrics/scorers/scorers.ts";
export { pauseWork, spendWork, WorkBudgetError } from "./rubrics/work.ts";
export { sqlStatements } from "./sql/statements.ts";
