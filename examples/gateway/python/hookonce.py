"""What an app behind hookonce's gateway, or one to which a relay posts, asks of a request: whether
it is genuine, and which event it is."""

import base64
import hashlib
import hmac
import time
from dataclasses import dataclass
from urllib.parse import unquote

TOLERANCE = 5 * 60  # seconds


@dataclass
class Event:
    source: str
    key: str
    type: str
    scope: str  # the object that the event is about
    kind: str  # of the rank: "version" or "time", or empty
    rank: int
    forced: bool


def open_delivery(secrets: list[str], headers: list[tuple[str, str]], body: bytes,
                  app: str) -> Event | None:
    """Returns the event of a delivery, or None if it is not genuine. Secrets are those of the
    gateway's destination, as they stand there; headers are all that came, with their names; body is
    the raw body. What a relay posts (hookonce-effect) is an event of its own, and not the one that
    asked for it. Its source is the app's name, because in the others those who send events may
    choose the keys."""
    facts = sorted((name.lower(), value) for name, value in headers)
    given = dict(facts)
    message, when = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    lines = ["hookonce-headers-v1", message, when]
    lines += [f"{name}:{value}" for name, value in facts
              if name == "idempotency-key" or name.startswith("hookonce-") and name != "hookonce-signature"]
    signed_body = f"{message}.{when}.".encode() + body
    signed_headers = ("\n".join(lines) + "\n").encode()
    genuine = any(_signed(_key(secret), given.get("webhook-signature", ""), signed_body)
                  and _signed(_key(secret), given.get("hookonce-signature", ""), signed_headers) for secret in secrets)
    if not genuine or not given.get("idempotency-key") or abs(time.time() - int(when)) > TOLERANCE:
        return None
    kind, _, rank = given.get("hookonce-rank", "").partition(":")
    effect = unquote(given.get("hookonce-effect", ""))
    return Event(
        source=app if effect else unquote(given["hookonce-source"]),
        key=not effect and unquote(given.get("hookonce-key", "")) or given["idempotency-key"],
        type=effect or unquote(given.get("hookonce-event-type", "")),
        scope=unquote(given.get("hookonce-scope", "")),
        kind=kind,
        rank=int(rank or 0),
        forced=given.get("hookonce-forced") == "true",
    )


def _key(secret: str) -> bytes:
    """The bytes of a secret. None at all would be known to everybody."""
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    if not key:
        raise ValueError("a secret is empty, or not base64 after whsec_")
    return key


def _signed(key: bytes, header: str, text: bytes) -> bool:
    """Whether one of the signatures in a header was made with the key."""
    wanted = b"v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest())
    return any(hmac.compare_digest(given.encode(), wanted) for given in header.split(" "))
