"""The HTTP API."""

from keepward.http.app_state import ServerOptions
from keepward.http.server import create_app

__all__ = ["ServerOptions", "create_app"]
