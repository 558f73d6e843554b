"""Interchange: memories in and out of files; every line that comes in goes through the gates."""

from keepward.interchange.exports import write_vault
from keepward.interchange.formats import FORMATS, Format
from keepward.interchange.imports import Imported, load
from keepward.interchange.restoring import plan_restore_export, restore_export

__all__ = [
    "FORMATS",
    "Format",
    "Imported",
    "load",
    "plan_restore_export",
    "restore_export",
    "write_vault",
]
