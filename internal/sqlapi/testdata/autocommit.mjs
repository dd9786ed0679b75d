// Claims in the ways in which programs with pg do, and prints the names of those of which the server warned.
import pg from "pg";

const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
let warned = 0;
client.on("notice", (notice) => (warned += notice.message.includes("outside a transaction") ? 1 : 0));

const lone = "SELECT hookonce.claim('shop', 'node-%')";
const params = "SELECT hookonce.claim($1, $2, $3, $4::bytea) AS go_on";
const body = Buffer.from('{"id": "evt_1; (x)"}');
let n = 0;
const values = () => ["shop", `node-${n++}`, "order.paid", body];
const book = () => client.query("INSERT INTO orders (event_id, customer, cents) VALUES ($1, 'cus_1', 1)", [`node-${n}`]);

const cases = {
  "text": () => client.query(lone.replace("%", n++)),
  "parameters": () => client.query(params, values()),
  "prepared": () => client.query({ name: "claim", text: params, values: values() }),
  "prepared again": () => client.query({ name: "claim", text: params, values: values() }),
  "BEGIN": async () => {
    await client.query("BEGIN");
    await client.query(params, values());
    await book();
    await client.query("COMMIT");
  },
  "BEGIN, not awaited": () => Promise.all([client.query("BEGIN"), client.query(params, values()), book(), client.query("COMMIT")]),
  "BEGIN in one message": () => client.query(`BEGIN; ${lone.replace("%", n++)}; INSERT INTO orders (event_id, customer, cents) VALUES ('x', 'cus_1', 1); COMMIT`),
};
for (const [name, run] of Object.entries(cases)) {
  const before = warned;
  await run();
  if (warned > before) console.log(name);
}
await client.end();
