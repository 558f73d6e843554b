"""The second Python SDK: `python python_2.py http URL < script`, or `... stdio COMMAND ARGUMENTS...`.

The era from PROOF_ERA, `legacy` or `auto`; a script and what is printed are those of `python_1`.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import MCPError, StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

VERBS = {
    "tools/list": lambda client, _: client.list_tools(),
    "tools/call": lambda client, params: client.call_tool(params["name"], params.get("arguments", {})),
    "resources/list": lambda client, _: client.list_resources(),
    "resources/templates/list": lambda client, _: client.list_resource_templates(),
    "resources/read": lambda client, params: client.read_resource(params["uri"]),
    "prompts/list": lambda client, _: client.list_prompts(),
    "prompts/get": lambda client, params: client.get_prompt(params["name"], params.get("arguments")),
}


async def main(kind: str, first: str, *rest: str) -> None:
    script = json.load(sys.stdin)
    answers = []
    headers = {"Authorization": f"Bearer {os.environ.get('KEEPWARD_TOKEN', '')}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = (
            streamable_http_client(first, http_client=http)
            if kind == "http"
            else stdio_client(StdioServerParameters(command=first, args=list(rest), env=dict(os.environ)))
        )
        async with Client(transport, mode=os.environ.get("PROOF_ERA", "auto")) as client:
            for method, params in script:
                try:
                    answer = await VERBS[method](client, params)
                    answers.append(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
                except MCPError as fault:
                    answers.append({"error": fault.code})
            revision = client.protocol_version
    print(json.dumps({"revision": revision, "answers": answers}))


asyncio.run(main(*sys.argv[1:]))
