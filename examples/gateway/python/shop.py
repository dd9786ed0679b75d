"""A shop behind hookonce's gateway: each payment is booked once, however often its event is delivered. Run it with
DATABASE_URL, SHOP_SECRET (several, with spaces between, while one is replaced) and, if need be, PORT. Needs psycopg 3."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg
from psycopg.pq import TransactionStatus

from hookonce import Event, open_delivery

SECRETS = os.environ["SHOP_SECRET"].split()


def connect() -> psycopg.Connection:
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def book(conn: psycopg.Connection, event: Event, payment: dict) -> None:
    """The effect. It uses the transaction that it is given and nothing else."""
    conn.execute("INSERT INTO payments (source, event_id, payment, cents) VALUES (%s, %s, %s, %s)",
                 (event.source, event.key, payment["id"], payment["amount"]))
    if newer(conn, event):
        conn.execute("INSERT INTO states (payment, status, event_id) VALUES (%s, %s, %s) ON CONFLICT (payment) "
                     "DO UPDATE SET status = excluded.status, event_id = excluded.event_id",
                     (payment["id"], payment["status"], event.key))


def newer(conn: psycopg.Connection, event: Event) -> bool:
    """Whether the event's state of its object is to be applied: late ones do not overwrite newer ones."""
    if not event.scope or not event.kind:
        return True  # nothing says that it is old
    ask = "SELECT hookonce.newer(hookonce.normal_key(hookonce.join_key(%s, %s)), %s, %s)"
    return conn.execute(ask, (event.source, event.scope, event.rank, event.kind)).fetchone()[0]


def handle(event: Event, body: bytes) -> None:
    """Claims the event, by the source and the key that the gateway has it under, and books it in one transaction."""
    with connect() as conn, conn.transaction():
        claim = conn.execute("SELECT hookonce.claim(%s, %s, %s)", (event.source, event.key, event.type))
        if claim.fetchone()[0]:
            book(conn, event, json.loads(body)["data"]["object"])
        if conn.info.transaction_status == TransactionStatus.INERROR:  # COMMIT would roll back, without an error
            raise RuntimeError("the transaction is rolled back, because the error of a statement was caught")


def failed(event: Event, error: Exception) -> None:
    """Leaves a trace that lasts, for whoever asks what was received and never completed."""
    if getattr(error, "sqlstate", None) == "55P03":
        return  # somebody else is at work on it
    with connect() as conn:
        conn.execute("SELECT hookonce.failed(%s, %s, %s)", (event.source, event.key, str(error)))


def respond(headers: list[tuple[str, str]], body: bytes) -> int:
    """Returns the status. 200 only after the commit; after anything else the gateway comes again."""
    event = open_delivery(SECRETS, headers, body, "shop")
    if event is None:
        return 401
    try:
        handle(event, body)
        return 200
    except Exception as error:
        try:
            failed(event, error)
        except psycopg.Error as lost:
            print("no trace was left:", lost, file=sys.stderr)
        return 503


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(respond(self.headers.items(), body))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
