// Asks the senders' own libraries for Node whether requests are authentic. Reads a JSON array of {provider, secret, url,
// method, headers, body}, the body in base64, from standard input, and writes one of true and false for each.
import { readFileSync } from "node:fs";
import hubspot from "@hubspot/api-client";
import { LinearWebhookClient } from "@linear/sdk/webhooks";
import Mux from "@mux/mux-node";
import { webhooks as polar } from "@polar-sh/sdk/2026-04";
import { isValidSignature } from "@sanity/webhook";
import Finch from "@tryfinch/finch-api";
import { WorkOS } from "@workos-inc/node";
import cloudinary from "cloudinary";
import { verifySignature as verifyGoCardless } from "gocardless-nodejs/webhooks";
import { verifyWebhookSignature as verifyHook0 } from "hook0-client";
import { validateWebhook as validateReplicate } from "replicate";
import { WebhooksHelper } from "square";
import { Webhook as StandardWebhook } from "standardwebhooks";

const workos = new WorkOS("sk_test_fake");
const mux = new Mux({ tokenId: "fake", tokenSecret: "fake" });
const finch = new Finch({ accessToken: "fake" });

// passes is for libraries that throw at what is not authentic, whatever they throw.
async function passes(verify) {
  try {
    await verify();
    return true;
  } catch {
    return false;
  }
}

const accepts = {
  // The library decodes nothing of the URL: its callers do.
  hubspot: ({ secret, method, url, headers, body }) =>
    passes(() => {
      const timestamp = Number(headers["x-hubspot-request-timestamp"]);
      const valid = hubspot.Signature.isValid({
        signatureVersion: "v3", method, url, timestamp, clientSecret: secret, requestBody: body, signature: headers["x-hubspot-signature-v3"],
      });
      if (!valid) throw new Error("not authentic");
    }),
  linear: ({ secret, headers, body }) =>
    passes(() => {
      const at = JSON.parse(body).webhookTimestamp;
      if (!new LinearWebhookClient(secret).verify(Buffer.from(body), headers["linear-signature"] ?? "", at)) throw new Error("not authentic");
    }),
  mux: ({ secret, headers, body }) => passes(() => mux.webhooks.verifySignature(body, headers, secret)),
  // The library takes events of types that it knows, and no others.
  polar: async ({ secret, headers, body }) => {
    try {
      await polar.validateEvent(body, headers, secret);
      return true;
    } catch (error) {
      return error.name === "PolarWebhookUnknownTypeError";
    }
  },
  sanity: ({ secret, headers, body }) => isValidSignature(body, headers["sanity-webhook-signature"] ?? "", secret),
  finch: ({ secret, headers, body }) => passes(() => finch.webhooks.verifySignature(body, headers, secret)),
  // The library signs what it gets from JSON.parse, as it writes that anew.
  workos: ({ secret, headers, body }) =>
    passes(() => workos.webhooks.constructEvent({ payload: JSON.parse(body), sigHeader: headers["workos-signature"], secret })),
  cloudinary: ({ secret, headers, body }) => {
    cloudinary.v2.config({ api_secret: secret });
    return cloudinary.v2.utils.verifyNotificationSignature(body, Number(headers["x-cld-timestamp"]), headers["x-cld-signature"]);
  },
  gocardless: ({ secret, headers, body }) => passes(() => verifyGoCardless(body, secret, headers["webhook-signature"])),
  coinbase: ({ secret, headers, body }) =>
    passes(() => verifyHook0(headers["x-hook0-signature"] ?? "", body, new Headers(headers), secret, 300)),
  replicate: ({ secret, headers, body }) =>
    passes(async () => {
      if (!(await validateReplicate({ headers, body }, secret))) throw new Error("not authentic");
    }),
  square: ({ secret, url, headers, body }) =>
    passes(async () => {
      const signatureHeader = headers["x-square-hmacsha256-signature"] ?? "";
      if (!(await WebhooksHelper.verifySignature({ requestBody: body, signatureHeader, signatureKey: secret, notificationUrl: url }))) throw new Error("not authentic");
    }),
  // As GitLab's documentation has it, and Supabase's with the beginning of the secret taken away.
  gitlab: ({ secret, headers, body }) => passes(() => new StandardWebhook(secret).verify(body, headers)),
  supabase: ({ secret, headers, body }) => passes(() => new StandardWebhook(secret.replace("v1,whsec_", "")).verify(body, headers)),
};

const verdicts = [];
for (const request of JSON.parse(readFileSync(0, "utf8"))) {
  request.body = Buffer.from(request.body, "base64").toString();
  verdicts.push(await accepts[request.provider](request));
}
console.log(JSON.stringify(verdicts));
