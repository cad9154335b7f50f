// Makes one call by the TypeScript client. Reads {"action", …} and writes {"result"} or {"error"}.

import { text } from "node:stream/consumers";

import { Tollhouse, TollhouseError, WebhookVerificationError, verifyEvent } from "tollhouse";

const { action, options, ...input } = JSON.parse(await text(process.stdin));

const tollhouse = new Tollhouse(options);

const ACTIONS = {
  initialize() {
    const { reference, amount } = input as { reference?: string; amount: number };
    const checkout = { success_url: "http://127.0.0.1/" };
    const payment = { email: "ada@example.com", currency: "NGN", amount, checkout };
    const body = { ...payment, ...(reference && { reference }) };
    return tollhouse.post("/api/v1/payment/initialize", { body });
  },
  fetch() {
    const path = { reference: String(input.reference) };
    return tollhouse.get("/api/v1/payment/fetch/reference/{reference}", { params: { path } });
  },
  list() {
    return tollhouse.get("/api/v1/payment/list", {
      params: { query: { status: "pending", limit: 5 } },
    });
  },
  users() {
    const query = { metadata: { "metadata.plan": "gold" } };
    return tollhouse.get("/api/v1/user/list", { params: { query } });
  },
  send_code() {
    const path = { user_id: String(input.user_id) };
    return tollhouse.get("/api/v1/user/email-verification/send/{user_id}", { params: { path } });
  },
  async verify() {
    const { secret, headers, body } = input;
    const event = verifyEvent(secret, headers, Buffer.from(body, "base64"));
    if (event.event !== "payment.success") throw new Error(event.event);
    return { reference: event.data.reference, amount: event.data.amount };
  },
};

try {
  const result = await ACTIONS[action as keyof typeof ACTIONS]();
  console.log(JSON.stringify({ result: result ?? null }));
} catch (error) {
  if (error instanceof TollhouseError) {
    const { status, message, fields, requestId, idempotencyKey } = error;
    console.log(JSON.stringify({ error: { status, message, fields, requestId, idempotencyKey } }));
  } else if (error instanceof WebhookVerificationError) {
    console.log(JSON.stringify({ error: { name: error.name } }));
  } else {
    throw error;
  }
}
