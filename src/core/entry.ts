/** What an author of an environment imports from `rollcall`. */
export type { AnyEnvironment } from "./environments/any-environment.ts";
export type {
  AnyTool,
  Call,
  Capabilities,
  LiveState,
  Need,
  RolloutFields,
  ScoringArgs,
  Sql,
  State,
  ToolArgs,
} from "./environments/contract.ts";
export { defineEnvironment, type EnvironmentLoader } from "./environments/define-environment.ts";
export { Environment } from "./environments/environment.ts";
export { MultiTurnEnv } from "./environments/multi-turn-env.ts";
export { SingleTurnEnv } from "./environments/single-turn-env.ts";
export { StatefulToolEnv } from "./environments/stateful-tool-env.ts";
export { inject, tool } from "./environments/tool.ts";
export { ToolEnv } from "./environments/tool-env.ts";
export {
  EnvError,
  InfraError,
  OverlongPromptError,
  RolloutError,
  ToolCallError,
  ToolError,
  ToolParseError,
} from "./errors.ts";
export type { Json, JsonObject } from "./json.ts";
export type { Message, Messages, ToolCall } from "./messages.ts";
export { extractBoxedAnswer, extractHashAnswer } from "./parsers/extract.ts";
export { Parser } from "./parsers/parser.ts";
export { MaybeThinkParser, ThinkParser } from "./parsers/think-parser.ts";
export { XMLParser } from "./parsers/xml-parser.ts";
export { JudgeRubric } from "./rubrics/judge-rubric.ts";
export { Rubric } from "./rubrics/rubric.ts";
export { RubricGroup } from "./rubrics/rubric-group.ts";
export { dataset } from "./task.ts";
