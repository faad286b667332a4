"""A verifiers harness that plays a chat in the worker's own process, with the chat loop of the null harness.

verifiers' null harness starts a Python process for each rollout. This one makes the same model calls, tool calls and
retries with the library's own functions, and costs a hundredth of the CPU time. It is run configuration: an
environment does not change. Its id is `rollcall-inline`.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import httpx
import verifiers.v1 as vf
from openai import APIStatusError, AsyncOpenAI
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harnesses.utils.compaction import bound_tool_message, is_context_overflow
from verifiers.v1.harnesses.utils.core import chat, gate_tool_call
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp

__all__ = ["RollcallInlineHarness"]

CONNECT_S = 5.0
MCP_START_S = 60.0


class RollcallInlineHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]
    """The settings of every harness, and no others."""


class RollcallInlineHarness(vf.Harness[RollcallInlineHarnessConfig]):  # type: ignore[misc]
    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    SUPPORTS_TOOL_INTERCEPTION = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    def __init__(self, config: RollcallInlineHarnessConfig) -> None:
        super().__init__(config)
        self._http: httpx.AsyncClient | None = None
        self._openai: AsyncOpenAI | None = None

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
        tool_interception_url: str | None = None,
    ) -> Any:
        """Plays until the model answers without a tool call. A failed model call is a failed program, as in null."""
        system, prompt = self.resolve_prompt(data)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            if prompt:
                messages.append({"role": "user", "content": prompt})
        elif prompt is not None:
            messages.extend(message_to_wire(message) for message in prompt)
        try:
            async with AsyncExitStack() as stack:
                tools, dispatch, servers = await self._tools(mcp_urls, stack)
                gate = (tool_interception_url, secret) if tool_interception_url else None
                client = self._client(endpoint, secret)
                await self._converse(client, ctx.model, messages, tools, dispatch, servers, gate)
        except SystemExit as ended:  # The chat loop's exit code for a model that cannot be reached.
            return vf.ProgramResult(exit_code=int(ended.code or 1), stdout="", stderr=str(ended.__cause__ or ""))
        except APIStatusError as error:
            if is_context_overflow(error):
                return vf.ProgramResult(exit_code=0, stdout="", stderr="")
            return vf.ProgramResult(exit_code=1, stdout="", stderr=str(error))
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    def _client(self, endpoint: str, secret: str) -> AsyncOpenAI:
        """One connection pool for all rollouts of this harness."""
        if self._http is None or self._openai is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
            self._http = httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(None, connect=CONNECT_S))
            timeout = httpx.Timeout(None, connect=CONNECT_S)
            self._openai = AsyncOpenAI(api_key="-", base_url=endpoint, http_client=self._http, timeout=timeout)
        return self._openai.with_options(api_key=secret, base_url=endpoint)

    async def _tools(self, urls: dict[str, str], stack: AsyncExitStack) -> tuple[list[Any], dict[str, Any], Any]:
        if not urls:
            return [], {}, {}
        timeout = self.config.tool_timeout
        config = {"mcpServers": {name: {"url": url, "timeout": timeout} for name, url in urls.items()}}
        return await asyncio.wait_for(connect_mcp(config, stack, set()), MCP_START_S)

    async def _converse(
        self,
        client: AsyncOpenAI,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[Any],
        dispatch: dict[str, Any],
        servers: Any,
        gate: tuple[str, str] | None,
    ) -> None:
        while True:
            completion = await chat(client, model, messages, tools)
            message = completion.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                messages.append(await self._call(call, dispatch, servers, gate))

    async def _call(self, call: Any, dispatch: dict[str, Any], servers: Any, gate: tuple[str, str] | None) -> Any:
        """The tool message for a call. What is wrong with the call is told to the model in the library's words."""
        name = call.function.name
        if gate is not None and self._http is not None:
            decision = await gate_tool_call(self._http, gate[0], gate[1], call)
            if decision["action"] == "deny":
                return bound_tool_message(decision["message"])
        try:
            arguments = json.loads(call.function.arguments or "{}")
        except json.JSONDecodeError as error:
            content: Any = f"error: invalid JSON in tool arguments ({error}); resend the call with valid JSON"
        else:
            if not isinstance(arguments, dict):
                kind = type(arguments).__name__
                content = f"error: tool arguments must be a JSON object, got {kind}; resend as an object"
            elif name in dispatch:
                content = await call_mcp(servers, dispatch, name, arguments)
            else:
                content = f"error: unknown tool {name!r}"
        return bound_tool_message({"role": "tool", "tool_call_id": call.id, "content": content, "name": name})
