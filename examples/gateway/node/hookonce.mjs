// What an app behind hookonce's gateway, or one to which a relay posts, asks of a request: whether
// it is genuine, and which event it is.
import { createHmac, timingSafeEqual } from "node:crypto";

const tolerance = 5 * 60; // seconds

// open returns the event of a delivery, or undefined if it is not genuine. Secrets are those of the
// gateway's destination, as they stand there; headers are as node:http has them; body is the raw
// body, a Buffer. What a relay posts (hookonce-effect) is an event of its own, and not the one that
// asked for it. Its source is the app's name, because in the others those who send events may
// choose the keys.
export function open(secrets, headers, body, app) {
  const id = headers["webhook-id"];
  const time = headers["webhook-timestamp"];
  const facts = Object.keys(headers).filter((name) => name === "idempotency-key" || (name.startsWith("hookonce-") && name !== "hookonce-signature"));
  const lines = ["hookonce-headers-v1", id, time, ...facts.sort().map((name) => `${name}:${headers[name]}`)];
  const genuine = secrets.map(key).some(
    (key) =>
      signed(key, headers["webhook-signature"], `${id}.${time}.`, body) &&
      signed(key, headers["hookonce-signature"], lines.join("\n") + "\n"),
  );
  if (!genuine || !headers["idempotency-key"] || !(Math.abs(Date.now() / 1000 - Number(time)) <= tolerance)) return undefined;

  const text = (name) => decodeURIComponent(headers[name] ?? "");
  const [kind, rank] = (headers["hookonce-rank"] ?? ":").split(":");
  const effect = text("hookonce-effect");
  return {
    source: effect ? app : text("hookonce-source"),
    key: (!effect && text("hookonce-key")) || headers["idempotency-key"],
    type: effect || text("hookonce-event-type"),
    scope: text("hookonce-scope"), // the object that the event is about
    kind, // of the rank: "version" or "time", or empty
    rank, // a whole number, as text, because it may be too long for a number of JavaScript
    forced: headers["hookonce-forced"] === "true",
  };
}

// key returns the bytes of a secret. None at all would be known to everybody.
function key(secret) {
  const bytes = secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : Buffer.from(secret);
  if (bytes.length === 0) throw new Error("a secret is empty, or not base64 after whsec_");
  return bytes;
}

// signed reports whether one of the signatures in a header was made with the key.
function signed(key, header, ...parts) {
  const mac = createHmac("sha256", key);
  for (const part of parts) mac.update(part);
  const wanted = Buffer.from(`v1,${mac.digest("base64")}`);
  return (header ?? "").split(" ").some((given) => {
    const bytes = Buffer.from(given);
    return bytes.length === wanted.length && timingSafeEqual(bytes, wanted);
  });
}
