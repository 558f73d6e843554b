"""The verbs of learning: feedback, and the steps that turn it and use into a better order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keepward.app.arguments import texts
from keepward.app.handle import Handle
from keepward.domain.feedback import Feedback
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.engine.reinforce import Reinforced
    from keepward.engine.training import Training


class Learning(Handle):
    """Learning from what was of use."""

    def feedback(self, receipt_id: str, *, used: Sequence[str] = (), ignored: Sequence[str] = ()) -> Feedback:
        """Say which memories of a context, or of a recall with ``receipt=True``, were used and which were not.

        It is kept beside the journal under this handle's actor and changes no answer until ``train_reranker``.
        Said again, it takes the place of what was said before.

        Raises:
            NotFound: no such receipt within reach.
            InvalidInput: an id that the receipt does not show, one on both sides, or none at all.
        """
        from keepward.engine.feedback import give

        if not isinstance(receipt_id, str) or not receipt_id:
            raise InvalidInput("feedback is on a receipt: give its id, a text")
        sides = texts("used", used), texts("ignored", ignored)
        return give(self._kit, self._who, receipt_id, used=sides[0], ignored=sides[1])

    def train_reranker(self) -> Training:
        """Train the reranker from all feedback, for the owner alone; it serves only where it proves better."""
        from keepward.engine.training import train_reranker

        self._owner("training the reranker")
        return train_reranker(self._kit, self._who)

    def learn_importance(self) -> Reinforced:
        """Turn the uses counted since the last time into importance, in one commit; for the owner alone."""
        from keepward.engine.reinforce import learn_importance

        self._owner("learning importance")
        return learn_importance(self._kit, self._who)
