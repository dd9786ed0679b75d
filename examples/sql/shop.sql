-- The tables of the shop. Those of hookonce come from `hookonce migrate`.
CREATE TABLE customers (
    id text PRIMARY KEY
);
CREATE TABLE orders (
    number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id text,
    customer text NOT NULL REFERENCES customers (id),
    cents    bigint NOT NULL
);
