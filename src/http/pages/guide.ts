import { operatorAt } from "../../units/contact.ts";
import type { HttpSettings } from "../deps.ts";

type Guided = Pick<
  HttpSettings,
  "baseUrl" | "dashboardUrl" | "contact" | "features" | "accountlessKeysPerAddressPerHour"
>;

/**
 * `/llms.txt`: the way from this address to a paid answer, for a program that has nobody to ask. It says what this
 * gateway's configuration has, and nothing of what it does not have.
 */
export const guide = (settings: Guided): string => `# Text generation gateway

> One address for text generation on many hosts, in OpenAI's and Anthropic's languages, paid from prepaid credit. Amounts are in USD.

Every request but the first has the header \`Authorization: Bearer <API_KEY>\`. Bodies are JSON.

## To an answer

1. ${firstKey(settings)}
2. \`GET ${settings.baseUrl}/v1/catalog\`: models, with prices in USD per million tokens. \`gateway/auto:free\`, and models that are \`free\` (as \`<id>:free\`), cost nothing.
3. Ask, streamed or not, with \`max_tokens\` as low as will do: its cost has to be covered before anything is sent.
   - \`POST ${settings.baseUrl}/v1/chat/completions\` or \`/v1/responses\`. OpenAI's packages: base URL \`${settings.baseUrl}/v1\`.
   - \`POST ${settings.baseUrl}/v1/messages\`. Anthropic's packages: base URL \`${settings.baseUrl}\`.
4. What it cost is \`usage.cost\` in the answer. The header \`x-gateway-receipt\` names its receipt: \`GET ${settings.baseUrl}/v1/receipts/<id>\`.${signed(settings)}
5. \`GET ${settings.baseUrl}/v1/me\`: the balance, the key's limits and what is used of them.

## When credit is short

${credit(settings)}

## Keys

- \`POST ${settings.baseUrl}/v1/keys/<id>/rotate\` replaces the key that sends it, which works for 24 hours more by default. With the recovery secret as the bearer token, the old key ends at once.
- \`PATCH ${settings.baseUrl}/v1/keys/<id>\` with \`daily_limit_usd\`, \`rpm_limit\`, …: a key may only lower its own limits. The recovery secret may raise them, and make more keys with \`POST ${settings.baseUrl}/v1/keys\`.
- The header \`x-gateway-run: <name>; usd=0.50; calls=40\` stops a loop at $0.50 or 40 calls.

## Errors

\`{"error": {"message", "type", "code", "param"}}\`: the message says what to do next, and ends with the address of its code. Wait for \`Retry-After\` where it is sent. To repeat a request without paying twice, send the same \`Idempotency-Key\` both times.

## More

- [All operations](${settings.baseUrl}/openapi.json): OpenAPI 3.1; [as a page](${settings.baseUrl}/docs/api)
- [Errors](${settings.baseUrl}/docs/errors)
- [Which models answer now](${settings.baseUrl}/status.json)
- [Dashboard](${settings.dashboardUrl}), for people
`;

const firstKey = ({ baseUrl, contact, accountlessKeysPerAddressPerHour }: Guided): string =>
  accountlessKeysPerAddressPerHour === 0
    ? `Keys are given out by ${operatorAt(contact)}.`
    : `\`POST ${baseUrl}/v1/keys\`, without any header or body: \`key\` is your API key, \`recovery_secret\` replaces it when it is lost or leaked. Save both: they are shown once.`;

const signed = ({ baseUrl, features }: Guided): string =>
  features.has("receipts.sign")
    ? ` With \`Accept: application/jose\` it is signed (compact JWS, Ed25519); its key is in ${baseUrl}/.well-known/jwks.json.`
    : "";

function credit({ baseUrl, dashboardUrl, contact, features }: Guided): string {
  const byOperator = `${capital(operatorAt(contact))} adds credit to the balance whose id the message names.`;
  if (!features.has("payments")) return `${byOperator} Free models answer meanwhile.`;
  return `1. Once: \`POST ${baseUrl}/v1/me/saved\` with the recovery secret as the bearer token and \`{"key": "<API_KEY>"}\` shows that both secrets are saved. Until then the refusal is a 400 without an offer.
2. \`GET ${baseUrl}/v1/payments/options\`: the ways to pay, and their limits.
3. By x402, where that is one: the refusal is a 402 with offers in its header \`payment-required\` (base64 of JSON, x402 version 2). Sign one, and send the same request again with \`payment-signature\`: it is paid for and answered. x402's clients do both by themselves, up to the amount that they are allowed.
4. Or ahead: \`POST ${baseUrl}/v1/credits\` with \`{"amount_usd": 5}\`, answered in the same way. 202 means that it is being confirmed: follow \`Location\`, or repeat the call: it pays nothing again. With an \`Idempotency-Key\` of its own for each order, a repeated call is never another order.

People pay at ${dashboardUrl} .`;
}

const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1);
