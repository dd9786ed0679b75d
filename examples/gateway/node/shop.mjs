// A shop behind hookonce's gateway: each payment is booked once, however often its event is delivered. Run it with
// DATABASE_URL, SHOP_SECRET (several, with spaces between, while one is replaced) and, if need be, PORT.
import { createServer } from "node:http";
import pg from "pg";
import { open } from "./hookonce.mjs";

const secrets = process.env.SHOP_SECRET.split(/\s+/).filter(Boolean);
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 8 });
// Without these two a connection that is lost, as in a failover, ends the process.
pool.on("connect", (client) => client.on("error", () => {})); // the query that was under way says it, too
pool.on("error", (error) => console.error("an idle connection was lost:", error.message));

// book is the effect. It uses the transaction that it is given and nothing else.
async function book(client, event, payment) {
  await client.query("INSERT INTO payments (source, event_id, payment, cents) VALUES ($1, $2, $3, $4)", [event.source, event.key, payment.id, payment.amount]);
  if (await newer(client, event)) {
    await client.query(
      "INSERT INTO states (payment, status, event_id) VALUES ($1, $2, $3) ON CONFLICT (payment) DO UPDATE SET status = excluded.status, event_id = excluded.event_id",
      [payment.id, payment.status, event.key],
    );
  }
}

// newer reports whether the event's state of its object is to be applied: late ones do not overwrite newer ones.
async function newer(client, event) {
  if (!event.scope || !event.kind) return true; // nothing says that it is old
  const ask = "SELECT hookonce.newer(hookonce.normal_key(hookonce.join_key($1, $2)), $3, $4) AS newer";
  return (await client.query(ask, [event.source, event.scope, event.rank, event.kind])).rows[0].newer;
}

// handle claims the event, by the source and the key that the gateway has it under, and books it in one transaction.
// After a statement that failed, COMMIT rolls back without an error: only the command that it names tells.
async function handle(event, body) {
  const client = await pool.connect();
  let broken;
  try {
    await client.query("BEGIN");
    const claim = await client.query("SELECT hookonce.claim($1, $2, $3) AS go_on", [event.source, event.key, event.type]);
    if (claim.rows[0].go_on) await book(client, event, JSON.parse(body).data.object);
    const end = await client.query("COMMIT");
    if (end.command !== "COMMIT") throw new Error("the server rolled back, because the error of a statement was caught");
  } catch (error) {
    await client.query("ROLLBACK").catch((e) => (broken = e));
    throw error;
  } finally {
    client.release(broken);
  }
}

// failed leaves a trace that lasts, for whoever asks what was received and never completed.
async function failed(event, error) {
  if (error.code === "55P03") return; // somebody else is at work on it
  await pool.query("SELECT hookonce.failed($1, $2, $3)", [event.source, event.key, error.message]);
}

// respond returns the status. 200 only after the commit; after anything else the gateway comes again.
async function respond(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts); // as it came, not parsed and written again
  const event = open(secrets, request.headers, body, "shop");
  if (!event) return 401;
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
  response.writeHead(status).end();
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
