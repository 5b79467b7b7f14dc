"""Views of the models in use and of what examining them found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from api.views import View

if TYPE_CHECKING:
    from inference.certificates import Certificate
    from inference.select import Models


class CheckedView(View):
    """One thing that was examined: `right` of `of` were as they should be."""

    name: str
    passed: bool
    right: int
    of: int


class CertificateView(View):
    """What a chat model was found to be able to do on this machine; `reads` and `writes` in tokens a second."""

    fit: Literal["capable", "small", "unfit"]
    made_at: str
    num_ctx: int
    context_tokens: int
    parallel: int
    reads: float
    writes: float
    checks: tuple[CheckedView, ...]

    @classmethod
    def of(cls, found: Certificate) -> Self:
        checks = tuple(
            CheckedView(name=check.name, passed=check.passed, right=check.right, of=check.of) for check in found.checks
        )
        return cls(
            fit=found.fit,
            made_at=found.made_at,
            num_ctx=found.num_ctx,
            context_tokens=found.context_tokens,
            parallel=found.parallel,
            reads=found.reads,
            writes=found.writes,
            checks=checks,
        )


class ModelsView(View):
    """The models by name. `tools`, `capable` and `context_tokens` are what the chat model is used for."""

    chat: str
    provider: Literal["ollama", "openai", "embedded"]
    tools: bool
    capable: bool
    context_tokens: int
    grader: str
    fallback: str | None
    embedder: str
    certificate: CertificateView | None

    @classmethod
    def of(cls, models: Models, found: Certificate | None) -> Self:
        chat = models.chat
        return cls(
            chat=chat.name,
            provider=chat.provider,
            tools=chat.traits.tools,
            capable=chat.traits.capable,
            context_tokens=chat.traits.context_tokens,
            grader=models.grader.name,
            fallback=None if models.fallback is None else models.fallback.name,
            embedder=models.embedder.id,
            certificate=None if found is None else CertificateView.of(found),
        )
