// Applications as the senders' own documentation has them, each with the official library, which knows nothing of a
// gateway. Writes a line for every request: the source that it came from and the status that it was answered with.
import { createServer } from "node:http";
import express from "express";
import Stripe from "stripe";
import slack from "@slack/bolt";
import twilio from "twilio";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { Webhooks, createNodeMiddleware } from "@octokit/webhooks";
import "@shopify/shopify-api/adapters/node";
import { ApiVersion, shopifyApi } from "@shopify/shopify-api";
import { WebhooksHelper } from "square";

const { SECRET: secret, WHSEC: whsec, SQUARE_URL: squareURL } = process.env;
const app = express();
const raw = express.raw({ type: "*/*" });

app.use((request, response, next) => {
  response.on("finish", () => console.log(`${request.get("hookonce-source")} ${response.statusCode}`));
  next();
});

const stripe = new Stripe("sk_test_fake");
app.post("/stripe", raw, (request, response) => {
  try {
    stripe.webhooks.constructEvent(request.body, request.headers["stripe-signature"], secret);
    response.json({ received: true });
  } catch (error) {
    response.status(400).send(`Webhook Error: ${error.message}`);
  }
});

function verifying(webhook) {
  return (request, response) => {
    try {
      webhook.verify(request.body.toString(), request.headers);
      response.status(204).end();
    } catch {
      response.status(400).end();
    }
  };
}
app.post("/svix", raw, verifying(new SvixWebhook(whsec)));
app.post("/standard", raw, verifying(new StandardWebhook(whsec)));

const receiver = new slack.ExpressReceiver({ signingSecret: secret, endpoints: "/slack", app, logLevel: "error" });
const bot = new slack.App({ receiver, authorize: async () => ({ botToken: "xoxb-fake", botId: "B1", botUserId: "U1" }), logLevel: "error" });
bot.event(/.*/, async () => {});

app.post("/twilio", express.urlencoded({ extended: false }), twilio.webhook(secret), (_request, response) => {
  response.type("text/xml").send(new twilio.twiml.MessagingResponse().toString());
});

const octokit = new Webhooks({ secret });
app.use(await createNodeMiddleware(octokit, { path: "/github" }));

const shopify = shopifyApi({ apiKey: "fake", apiSecretKey: secret, hostName: "shop.example", apiVersion: ApiVersion.October25, isEmbeddedApp: false, logger: { level: 0 } });
app.post("/shopify", express.text({ type: "*/*" }), async (request, response) => {
  const { valid } = await shopify.webhooks.validate({ rawBody: request.body, rawRequest: request, rawResponse: response });
  response.status(valid ? 200 : 401).end();
});

app.post("/square", express.text({ type: "*/*" }), async (request, response) => {
  const valid = await WebhooksHelper.verifySignature({
    requestBody: request.body,
    signatureHeader: request.headers["x-square-hmacsha256-signature"] ?? "",
    signatureKey: secret,
    notificationUrl: squareURL,
  });
  response.status(valid ? 200 : 403).end();
});

const server = createServer(app);
server.listen(0, "127.0.0.1", () => console.log(`listening ${server.address().port}`));
