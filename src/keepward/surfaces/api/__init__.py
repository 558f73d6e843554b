"""The HTTP API."""

from keepward.surfaces.api.app import create_app
from keepward.surfaces.api.options import ServerOptions

__all__ = ["ServerOptions", "create_app"]
