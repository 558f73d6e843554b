"""The client: every operation of ``Memory`` over HTTP.

with Client("http://127.0.0.1:8321", token) as memory:
    memory.remember("Ana prefers tabs", source="user_message")
"""

from keepward.client.client import Client, CommitEvent, ImportedLine
from keepward.client.encoding import ClientDraft

__all__ = ["Client", "ClientDraft", "CommitEvent", "ImportedLine"]
