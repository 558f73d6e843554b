"""Operations that count memories: facets, activity by day, sources; and the lineage of one memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from keepward.core.browse import Activity as Written
from keepward.core.browse import Facets as Counted
from keepward.core.browse import Lineage as Related
from keepward.core.browse import Member
from keepward.core.browse import Sources as Told
from keepward.verbs import NONE, Limit, Request, fields, verb
from keepward.verbs.read import Browsed

if TYPE_CHECKING:
    from keepward.services.session import Session

R = TypeVar("R")


class Surveyed(Browsed[R]):
    """A request that is answered from all memories that pass its filters."""

    def parameters(self, session: Session) -> dict[str, Any]:
        """Return the filters as one, and what else it takes by name."""
        own = {name: getattr(self, name) for name in self.names if name not in Browsed.names}
        return {"selection": self.selection(), **own}


@verb("facets", "GET /memory/facets", right="read")
class Facets(Surveyed[Counted]):
    """Return how many memories pass all filters, and how many of each sort; a facet as if nothing of it was chosen."""

    function = "services.browse:facets"
    of: Annotated[
        list[fields.Facet], Limit("Facets that are counted; all of them where none is named.", maxItems=16)
    ] = NONE
    most: Annotated[int, Limit("Most values listed of a facet.", minimum=1, maximum=100_000)] = 50


@verb("activity", "GET /memory/activity", right="read")
class Activity(Surveyed[Written]):
    """Return how many versions were written on each day, and by whom; the days end with `until`, or today."""

    function = "services.browse:activity"
    by: Literal["author", "source", "session", "tier", "kind", "scope"] = "author"
    days: Annotated[int, Limit("How many.", minimum=1, maximum=400)] = 30
    zone: Annotated[int, Limit("Minutes east of UTC that a day begins by.", minimum=-1439, maximum=1439)] = 0


@verb("sources", "GET /memory/sources", right="read")
class Sources(Surveyed[Told]):
    """Return what each actor, source, reference and session wrote, at what trust, and when."""

    function = "services.browse:sources"


@verb("users", "GET /memory/users", right="read", answer="items")
class Users(Request[list[Member]]):
    """Return the users with memories at this scope and below, each with how many, by name."""

    function = "services.browse:users"


@verb("projects", "GET /memory/projects", right="read", answer="items")
class Projects(Request[list[Member]]):
    """Return the projects with memories at this scope and below, each with how many, by name."""

    function = "services.browse:projects"


@verb("lineage", "GET /memory/items/{id}/lineage", right="read")
class Lineage(Request[Related]):
    """Return what a memory was made from and what was made of it, over any number of steps."""

    function = "services.provenance:lineage"
    memory_id: fields.NamedId
