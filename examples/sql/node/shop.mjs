// A shop's webhooks: each order is booked once, however often and however many at a time its event
// arrives. Run it with DATABASE_URL, SHOP_SECRET and, if need be, PORT.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import pg from "pg";

const source = "shop";
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 8 });
// Without these two a connection that is lost, as in a failover, ends the process.
pool.on("connect", (client) => client.on("error", () => {})); // the query that was under way says it, too
pool.on("error", (error) => console.error("an idle connection was lost:", error.message));

// book is the effect. It uses the transaction that it is given and nothing else.
async function book(client, event) {
  await client.query("INSERT INTO orders (event_id, customer, cents) VALUES ($1, $2, $3)", [event.id, event.customer, event.cents]);
  const mail = JSON.stringify({ to: event.customer, cents: event.cents });
  await client.query("SELECT hookonce.enqueue('mail.receipt', $1::text, $2, $3)", [mail, source, event.id]);
}

// handle claims the event and books it in one transaction. It returns false for a copy of what is done.
// After a statement that failed, COMMIT rolls back without an error: only the command that it names tells.
async function handle(event, body) {
  const client = await pool.connect();
  let broken;
  try {
    await client.query("BEGIN");
    const claim = await client.query("SELECT hookonce.claim($1, $2, $3, $4::bytea) AS go_on", [source, event.id, event.type, body]);
    if (claim.rows[0].go_on) await book(client, event);
    const end = await client.query("COMMIT");
    if (end.command !== "COMMIT") throw new Error("the server rolled back, because the error of a statement was caught");
    return claim.rows[0].go_on;
  } catch (error) {
    await client.query("ROLLBACK").catch((e) => (broken = e));
    throw error;
  } finally {
    client.release(broken);
  }
}

// failed leaves a trace that lasts, for whoever asks what was received and never completed.
async function failed(event, error) {
  const busy = error.code === "55P03"; // somebody else is at work on it
  if (!busy) await pool.query("SELECT hookonce.failed($1, $2, $3)", [source, event.id, error.message]);
}

function verified(request, body) {
  const given = Buffer.from(request.headers["x-signature"] ?? "", "hex");
  const wanted = createHmac("sha256", process.env.SHOP_SECRET).update(body).digest();
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

// respond returns the status. 200 only after the commit; 503 makes the sender come again.
async function respond(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  if (!verified(request, body)) return 401;
  const event = JSON.parse(body);
  try {
    await handle(event, body);
    return 200;
  } catch (error) {
    await failed(event, error).catch((e) => console.error("no trace was left:", e.message));
    return 503;
  }
}

const server = createServer(async (request, response) => {
  const status = await respond(request).catch((error) => (console.error(error.message), 503));
  response.writeHead(status, status === 503 ? { "Retry-After": "1" } : {}).end();
});
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
