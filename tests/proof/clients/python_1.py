"""The first Python SDK, run in an environment that has it: `python python_1.py http URL < script`.

Or `python python_1.py stdio COMMAND ARGUMENTS...`. A script is a list of [method, params]; printed are the revision
that was agreed on and the answers, an error of the protocol by its code.
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

VERBS = {
    "tools/list": lambda session, _: session.list_tools(),
    "tools/call": lambda session, params: session.call_tool(params["name"], params.get("arguments", {})),
    "resources/list": lambda session, _: session.list_resources(),
    "resources/templates/list": lambda session, _: session.list_resource_templates(),
    "resources/read": lambda session, params: session.read_resource(params["uri"]),
    "prompts/list": lambda session, _: session.list_prompts(),
    "prompts/get": lambda session, params: session.get_prompt(params["name"], params.get("arguments")),
}


async def main(kind: str, first: str, *rest: str) -> None:
    script = json.load(sys.stdin)
    answers = []
    async with AsyncExitStack() as stack:
        if kind == "http":
            headers = {"Authorization": f"Bearer {os.environ.get('KEEPWARD_TOKEN', '')}"}
            streams = await stack.enter_async_context(streamablehttp_client(first, headers=headers))
        else:
            server = StdioServerParameters(command=first, args=list(rest), env=dict(os.environ))
            streams = await stack.enter_async_context(stdio_client(server))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        begun = await session.initialize()
        for method, params in script:
            try:
                answer = await VERBS[method](session, params)
                answers.append(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
            except McpError as fault:
                answers.append({"error": fault.error.code})
    print(json.dumps({"revision": begun.protocolVersion, "answers": answers}))


asyncio.run(main(*sys.argv[1:]))
