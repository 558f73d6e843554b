"""The verbs of learning: feedback, and the steps that turn it and use into a better order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from keepward.app.handle import Handle
from keepward.errors import InvalidInput
from keepward.model.query import Feedback
from keepward.verbs.arguments import texts

if TYPE_CHECKING:
    from keepward.app.memory import Memory
    from keepward.model.query import Reinforced, Training


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
        from keepward.engine.use import give

        if not isinstance(receipt_id, str) or not receipt_id:
            raise InvalidInput("feedback is on a receipt: give its id, a text")
        sides = texts("used", used), texts("ignored", ignored)
        return give(self._kit, self._who, receipt_id, used=sides[0], ignored=sides[1])

    def train_reranker(self, *, on_progress: Callable[[int, int], None] | None = None) -> Training:
        """Train the reranker from all feedback, for the owner alone; it serves only where it proves better.

        ``on_progress`` is told (done, total). A training that was interrupted begins anew.
        """
        from keepward.engine.training import train_reranker

        self._owner("training the reranker")
        return train_reranker(self._kit, self._who, on_progress=on_progress)

    def learn_importance(self) -> Reinforced:
        """Turn the uses counted since the last time into importance, in one commit; for the owner alone."""
        from keepward.engine.use import learn_importance

        self._owner("learning importance")
        return learn_importance(self._kit, self._who)


def weights_told(memory: Memory, name: str) -> tuple[str | None, bool]:
    """Return weights that the journal names, as text for the owner's export; and whether they were erased."""
    from keepward.engine.learned import kept_text

    memory._owner("reading the weights of the reranker")  # noqa: SLF001  a part of the front door
    return kept_text(memory._kit.store, memory.tenant, name)  # noqa: SLF001  as above


def take_weights(memory: Memory, name: str, text: str) -> None:
    """Keep weights that came with an import, marked as such; for the owner alone.

    Raises:
        ValueError: they are not the ones of this name.
    """
    from keepward.engine.learned import CARRIED, KEY, checked

    memory._owner("keeping the weights of a reranker")  # noqa: SLF001  a part of the front door
    checked(name, text)
    with memory._kit.store.write() as writer:  # noqa: SLF001  as above
        writer.put_artefact(memory.tenant, KEY, name, text)
        writer.put_artefact(memory.tenant, CARRIED, name, "")
