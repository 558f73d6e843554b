"""The verbs of credentials: making, listing and revoking tokens, and opening a handle by one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.app.handle import Handle
from keepward.errors import InvalidInput, StoreUnavailable
from keepward.model.commit import Receipt
from keepward.model.trust import Issued, Token
from keepward.model.value import Duration
from keepward.verbs.arguments import ending, scope_named, tenant_named

if TYPE_CHECKING:
    from typing import Self


class Credentials(Handle):
    """Tokens, which are the owner's to give."""

    def create_token(
        self,
        name: str,
        *,
        rights: str = "agent",
        can: Sequence[str] | None = None,
        tenant: str | None = None,
        scope: str | None = None,
        expires: datetime | Duration | None = None,
    ) -> Issued:
        """Make a token for a bearer of that name; its ``secret`` is shown now and never again.

        ``rights`` is ``agent``, ``reviewer`` or ``owner``; ``can`` narrows it, as in ``["read"]``. Tenant and
        scope are this handle's unless named. ``expires`` is an instant, a term (seconds, a timedelta,
        text such as ``30d``), or None.
        """
        from keepward.engine.credentials import create

        if isinstance(can, str):
            raise InvalidInput("can is a list of texts")
        end = ending(expires)
        until = self.now + end if isinstance(end, timedelta) else end
        return create(
            self._kit,
            self._who,
            name=name,
            rights=rights,
            can=None if can is None else frozenset(can),
            tenant=self.tenant if tenant is None else tenant_named(tenant),
            scope=self.scope if scope is None else scope_named(scope),
            expires_at=until,
        )

    def tokens(self) -> list[Token]:
        """Return every token of the store, oldest first, without its secret; for the owner alone."""
        from keepward.engine.credentials import listed

        return listed(self._kit, self._who)

    def revoke_token(self, token_id: str) -> Receipt:
        """End a token; handles that it opened are refused from then on."""
        from keepward.engine.credentials import revoke

        return revoke(self._kit, self._who, token_id)

    def holding(self, token: str) -> Self:
        """Return the handle of a token's bearer on the same store; actor, tenant and scope are the token's.

        Raises:
            Unauthorised: the token is unknown, expired or revoked.
        """
        from keepward.engine.credentials import recognise
        from keepward.engine.kit import Who

        known = recognise(self._shared.usable(), token)
        return type(self)(self._shared, Who(tenant=known.tenant, scope=known.scope, actor=known.actor))

    def owner_token(self) -> Path:
        """Return the file with the owner's token, 0600 in the configuration folder; made when missing.

        Raises:
            Unauthorised: this handle is not an owner's.
            StoreUnavailable: this machine has no place for it.
        """
        from keepward.adapters.tokenfile import TokenFile
        from keepward.engine.credentials import create, recognise
        from keepward.errors import Unauthorised

        self._owner("the owner's token")
        try:
            file = TokenFile(self._shared.config_dir, self._kit.store.store_id)
            kept = file.read()
            if kept is not None:
                try:
                    if recognise(self._kit, kept).actor.is_owner:
                        return file.path
                except Unauthorised:
                    # Revoked, or of another copy of this store: make a new one in its place.
                    pass
            issued = create(
                self._kit,
                self._who,
                name=self.actor.name,
                rights="owner",
                can=None,
                tenant=self.tenant,
                scope="/",
                expires_at=None,
            )
            file.write(issued.secret)
        except OSError as fault:
            raise StoreUnavailable("this machine has no place for the owner's token; set KEEPWARD_HOME") from fault
        return file.path
