"""A shop's webhooks: each order is booked once, however often and however many at a time its event
arrives. Run it with DATABASE_URL, SHOP_SECRET and, if need be, PORT. Needs psycopg 3."""

import hashlib
import hmac
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg
from psycopg.pq import TransactionStatus

SOURCE = "shop"


def connect() -> psycopg.Connection:
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def book(conn: psycopg.Connection, event: dict) -> None:
    """The effect. It uses the transaction that it is given and nothing else."""
    conn.execute("INSERT INTO orders (event_id, customer, cents) VALUES (%s, %s, %s)",
                 (event.get("id"), event["customer"], event["cents"]))
    mail = json.dumps({"to": event["customer"], "cents": event["cents"]})
    conn.execute("SELECT hookonce.enqueue('mail.receipt', %s::text, %s, %s)", (mail, SOURCE, event.get("id")))


def handle(event: dict, body: bytes) -> bool:
    """Claims the event and books it in one transaction. Returns False for a copy of what is done."""
    with connect() as conn, conn.transaction():
        claim = conn.execute("SELECT hookonce.claim(%s, %s, %s, %s)", (SOURCE, event.get("id"), event["type"], body))
        go_on = claim.fetchone()[0]
        if go_on:
            book(conn, event)
        if conn.info.transaction_status == TransactionStatus.INERROR:  # COMMIT would roll back, without an error
            raise RuntimeError("the transaction is rolled back, because the error of a statement was caught")
        return go_on


def failed(event: dict, error: Exception) -> None:
    """Leaves a trace that lasts, for whoever asks what was received and never completed."""
    if getattr(error, "sqlstate", None) == "55P03":
        return  # somebody else is at work on it
    with connect() as conn:
        conn.execute("SELECT hookonce.failed(%s, %s, %s)", (SOURCE, event.get("id"), str(error)))


def verified(signature: str, body: bytes) -> bool:
    wanted = hmac.new(os.environ["SHOP_SECRET"].encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(signature.encode(), wanted.encode())


def respond(signature: str, body: bytes) -> int:
    """Returns the status. 200 only after the commit; 503 makes the sender come again."""
    if not verified(signature, body):
        return 401
    event = json.loads(body)
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
        status = respond(self.headers.get("X-Signature", ""), body)
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(os.environ.get("PORT", 0))), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
