// Verifies deliveries with the published library. Reads a JSON array of {secret, headers, body} from
// standard input and writes one of true and false for each.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

function accepts({ secret, headers, body }) {
  const webhook = secret.startsWith("whsec_") ? new Webhook(secret) : new Webhook(secret, { format: "raw" });
  try {
    webhook.verify(body, headers);
    return true;
  } catch (error) {
    if (error.name !== "WebhookVerificationError" && error.constructor.name !== "WebhookVerificationError") throw error;
    return false;
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(accepts)));
