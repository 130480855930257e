"""The service's addresses: what each takes, and what it answers."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Response
from fastapi import Request as HTTPRequest
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

import kakehashi
from kakehashi.decoding.methods import Sampling
from kakehashi.inference.options import Options
from kakehashi.inference.request import Request
from kakehashi.serving.guard import Guard
from kakehashi.serving.metrics import CONTENT_TYPE
from kakehashi.serving.page import CONTENT_POLICY, PAGE
from kakehashi.serving.refusal import Refusal
from kakehashi.serving.schema import (
    KINDS,
    AlignAnswer,
    Attended,
    AttentionQuestion,
    Health,
    ModelAnswer,
    PairsQuestion,
    Refused,
    RuledText,
    ScoreAnswer,
    TranslateAnswer,
    TranslateQuestion,
)
from kakehashi.serving.service import Service
from kakehashi.serving.tasks import Aligning, Attending, Scoring, Task, Text, Translating, strings

_PATHS = (
    "/",
    "/translate",
    "/score",
    "/align",
    "/attention",
    "/health",
    "/model",
    "/metrics",
    "/openapi.json",
)
_NAME = 40
"""Characters of a field's name that are repeated where it is refused."""
_REFUSED = {
    400: "The model cannot do what is asked.",
    405: "Not a method of this address.",
    408: "The request did not arrive in time.",
    413: "Too large: the body, a text, or their number.",
    415: "Not sent as JSON.",
    421: "Not a name of this service, see --allow-host.",
    422: "Not what this address takes.",
    500: "Something went wrong inside of the service.",
    503: "Overloaded, and Retry-After says when to come back; or the service stops.",
    504: "It took too long.",
}


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Refused, "description": _REFUSED[status]} for status in statuses}


_REFUSALS = _refusals(*_REFUSED)
_OF_FACTS = _refusals(405, 421, 500, 503)


def create_app(service: Service, model: ModelAnswer, names: Collection[str] = ()) -> ASGIApp:
    """The application around a running service, guarded.

    Args:
        service: what answers.
        model: what is told of the model.
        names: names under which this service may be asked, beside its address and localhost.
    """
    app = FastAPI(
        title="Kakehashi",
        summary=f"Translation, {model.source_language} to {model.target_language}.",
        version=kakehashi.__version__,
        # Their pages load scripts from elsewhere; the schema itself is at /openapi.json.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _questions(app, service)
    _facts(app, service, model)
    _errors(app, service)
    limits = service.limits
    return Guard(  # around everything: what Starlette answers by itself has its headers too
        app,
        metrics=service.metrics,
        stopping=service.stopping,
        paths=_PATHS,
        names=names,
        body=limits.body,
        seconds=limits.seconds,
    )


def _questions(app: FastAPI, service: Service) -> None:
    async def ask(task: Task, texts: Sequence[Text], request: HTTPRequest) -> list[Any]:
        _check_size(texts, service)

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        return await service.answers(task, texts, gone)

    @app.post("/translate", responses=_REFUSALS)
    async def translate(question: TranslateQuestion, request: HTTPRequest) -> TranslateAnswer:
        """Translate texts. Those of requests that come together share batches."""
        _check_beam(max(question.beam or 1, question.n_best), service)
        options = Options(**question.model_dump(exclude={"texts", "sampling"}))
        if question.sampling is not None:
            options = replace(options, method=Sampling(**question.sampling.model_dump()))
        texts = [_request(text) for text in question.texts]
        return TranslateAnswer(translations=await ask(Translating(options), texts, request))

    @app.post("/score", responses=_REFUSALS)
    async def score(question: PairsQuestion, request: HTTPRequest) -> ScoreAnswer:
        """The log probability of given translations."""
        return ScoreAnswer(scores=await ask(Scoring(), _pairs(question), request))

    @app.post("/align", responses=_REFUSALS)
    async def align(question: PairsQuestion, request: HTTPRequest) -> AlignAnswer:
        """Which words of given translations belong to which of their sources."""
        return AlignAnswer(alignments=await ask(Aligning(), _pairs(question), request))

    @app.post("/attention", responses=_REFUSALS)
    async def attention(question: AttentionQuestion, request: HTTPRequest) -> Attended:
        """How the model attends while it translates a sentence; the torch engine only."""
        _check_beam(question.beam or 1, service)
        (answer,) = await ask(Attending(question.beam), [Request(question.text)], request)
        assert isinstance(answer, Attended)
        return answer


def _facts(app: FastAPI, service: Service, model: ModelAnswer) -> None:
    @app.get("/health", responses=_OF_FACTS)
    async def health() -> Health:
        """Whether the service is there: it answers without the model, however busy that is."""
        return Health(status="ok", waiting=len(service.waiting))

    @app.get("/model", responses=_OF_FACTS)
    async def facts() -> ModelAnswer:
        """Which model this is, what it takes, and its card."""
        return model

    @app.get("/metrics", response_class=Response, responses=_OF_FACTS)
    async def metrics() -> Response:
        """Counters in Prometheus' text form."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        """The page to type into."""
        headers = {"Content-Security-Policy": CONTENT_POLICY}
        return Response(PAGE, media_type="text/html; charset=utf-8", headers=headers)


def _errors(app: FastAPI, service: Service) -> None:
    def refuse(status: int, cause: str, sentence: str, headers: Any = None) -> Response:
        service.metrics.errors.labels(cause).inc()
        return JSONResponse({"error": sentence}, status, headers)

    @app.exception_handler(Refusal)
    async def refused(request: HTTPRequest, error: Refusal) -> Response:
        return refuse(error.status, error.cause, error.sentence, error.headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: HTTPRequest, error: RequestValidationError) -> Response:
        return refuse(422, "malformed", _sentence(error))

    @app.exception_handler(HTTPException)
    async def elsewhere(request: HTTPRequest, error: HTTPException) -> Response:
        if error.status_code == 400:  # FastAPI's, of a body that the JSON reader breaks off
            return refuse(422, "malformed", _unreadable(error))
        sentence = {
            404: "there is nothing at this address; /openapi.json lists those there are",
            405: "this address does not take that method; /openapi.json says which it takes",
        }.get(error.status_code, error.detail)
        return refuse(error.status_code, "malformed", sentence, error.headers)

    @app.exception_handler(Exception)
    async def failed(request: HTTPRequest, error: Exception) -> Response:
        sentence = "something went wrong inside of the service; its log says what"
        return refuse(500, "failed", sentence)


def _request(text: str | RuledText) -> Text:
    if isinstance(text, str):
        return Request(text)
    return Request(text.text, text.prefix, tuple(text.required), tuple(text.forbidden))


def _pairs(question: PairsQuestion) -> list[Text]:
    return [(pair.source, pair.target) for pair in question.pairs]


def _check_beam(beam: int, service: Service) -> None:
    if beam > (most := service.limits.beam):
        raise Refusal(422, "malformed", f"beam and n_best go up to {most} here")


def _check_size(texts: Sequence[Text], service: Service) -> None:
    limits = service.limits
    if len(texts) > limits.lines:
        raise Refusal(
            413,
            "too_large",
            f"{len(texts):,} texts are more than the {limits.lines:,} that a request may hold: "
            "send them in several requests",
        )
    for number, text in enumerate(texts, 1):
        if (longest := max(map(len, strings(text)))) > limits.characters:
            raise Refusal(
                413,
                "too_large",
                f"text {number} has {longest:,} characters, and {limits.characters:,} are allowed",
            )


def _short(name: str) -> str:
    """A name of a field, which may be anything."""
    return name if len(name) <= _NAME else f"{name[:_NAME]}..."


def _unreadable(error: HTTPException) -> str:
    """What is wrong with a body that is no JSON that can be read."""
    match error.__cause__:
        case UnicodeDecodeError():
            return "the body is not JSON: it is not in UTF-8"
        case RecursionError():
            return "the body is nested too deeply"
        case _:
            return "the body is not JSON that can be read: a number in it is too long"


def _sentence(error: RequestValidationError) -> str:
    """The first thing that is wrong, without repeating what was sent."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first['ctx']['error']} at character {first['loc'][-1]}"
    path = [at for at in first["loc"][1:] if at not in KINDS]
    where = "".join(f"[{at}]" if isinstance(at, int) else f".{_short(at)}" for at in path)
    said = first["msg"][:1].lower() + first["msg"][1:]
    return f"{where.lstrip('.') or 'the body'}: {said}"
