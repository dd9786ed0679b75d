"""Claims in the ways in which programs with psycopg do, and prints the names of those of which the server warned."""

import os

import psycopg

warned = []
numbers = iter(range(1000))


def connect(**options) -> psycopg.Connection:
    conn = psycopg.connect(os.environ["DATABASE_URL"], **options)
    conn.add_notice_handler(lambda d: warned.append(d) if "outside a transaction" in d.message_primary else None)
    return conn


def claim(conn, **options) -> None:
    conn.execute("SELECT hookonce.claim(%s, %s, %s, %s)", ("shop", f"python-{next(numbers)}", "order.paid", b'{"id": "evt; (x)"}'), **options)


def book(conn) -> None:
    conn.execute("INSERT INTO orders (event_id, customer, cents) VALUES (%s, 'cus_1', 1)", (f"python-{next(numbers)}",))


def text(conn) -> None:
    conn.execute(f"SELECT hookonce.claim('shop', 'python-{next(numbers)}')")


def transaction(conn) -> None:
    with conn.transaction():
        claim(conn)
        book(conn)


def both(conn) -> None:
    claim(conn)
    book(conn)
    conn.commit()


def pipeline(conn) -> None:
    with conn.pipeline(), conn.transaction():
        claim(conn)
        book(conn)


def pipeline_without_begin(conn) -> None:
    with conn.pipeline():
        claim(conn)
        book(conn)


for name, autocommit, run in [
    ("autocommit, text", True, text),
    ("autocommit, parameters", True, claim),
    ("autocommit, prepared", True, lambda conn: claim(conn, prepare=True)),
    ("autocommit, transaction()", True, transaction),
    ("autocommit, pipeline with transaction()", True, pipeline),
    ("autocommit, pipeline of claim and work", True, pipeline_without_begin),
    ("default, commit()", False, both),
]:
    warned.clear()
    with connect(autocommit=autocommit) as conn:
        run(conn)
        if warned:
            print(name)
