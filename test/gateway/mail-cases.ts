import { expect } from "bun:test";
import { MAX_EVENT_MAILS } from "../../src/customers/mail/event-mail.ts";
import { type Clock, type EpochMs, HOUR_MS, systemClock } from "../../src/units/clock.ts";
import { MailServer } from "../fakes/mail-server.ts";
import { until } from "../fakes/until.ts";
import { type OpenGateway, open } from "./open.ts";

/** Several gateways of one store, or one. An owner has events mailed, more than an hour may have. */
export async function mailsOf(gateways: number, store: string): Promise<void> {
  const server = await MailServer.start();
  // All of it is within one hour.
  const shift = (systemClock.now() % HOUR_MS) - 60_000;
  const clock: Clock = { ...systemClock, now: () => (systemClock.now() - shift) as EpochMs };
  const nodes = await Promise.all(
    Array.from({ length: gateways }, () =>
      open(
        `${store}
smtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }
`,
        {},
        clock,
      ),
    ),
  );
  const first = nodes[0]!;
  const { key, balance_id, recovery_secret: bearer } = await first.key(1);
  const send = (method: string, path: string, json?: object, as = bearer) =>
    first.send(method, path, {
      bearer: as,
      headers: as === bearer ? {} : { "x-gateway-balance": balance_id },
      ...(json === undefined ? {} : { json }),
    });
  const refused = await send("POST", "/v1/webhooks", { format: "mail" });
  expect([refused.status, refused.json.error.param]).toEqual([400, "format"]);

  const session = await signedIn(first, { key, balance: balance_id }, server);
  const withUrl = await send(
    "POST",
    "/v1/webhooks",
    { format: "mail", url: "https://example.com/hook" },
    session,
  );
  expect([withUrl.status, withUrl.json.error.param]).toEqual([400, "url"]);
  const made = await send("POST", "/v1/webhooks", { format: "mail", events: ["key.created"] }, session);
  expect([made.status, made.json]).toEqual([
    201,
    expect.objectContaining({ format: "mail", url: null, secret: null, events: ["key.created"] }),
  ]);
  const path = `/v1/webhooks/${made.json.id}`;
  expect((await send("PATCH", path, { url: "https://example.com" }, session)).status).toBe(400);
  expect((await send("POST", `${path}/rotate`, undefined, session)).status).toBe(400);

  const before = server.mails.length;
  const test = await send("POST", `${path}/test`, undefined, session);
  expect(test.json).toMatchObject({ delivered: true });
  expect((await server.mail(before + 1)).text).toContain("webhook");
  for (let n = 0; n < MAX_EVENT_MAILS + 5; n++)
    expect((await send("POST", "/v1/keys", { name: `key ${n}` }, session)).status).toBe(201);
  await until(() => server.mails.length >= before + MAX_EVENT_MAILS);
  const delivered = async () =>
    (await send("GET", "/v1/events?type=key.created&limit=100", undefined, session)).json.data;
  await until(async () => {
    const taken = (await delivered()).filter(
      (event: { deliveries: readonly { delivered_at: string | null }[] }) =>
        event.deliveries.some(({ delivered_at }) => delivered_at !== null),
    );
    return taken.length === MAX_EVENT_MAILS + 5;
  });
  // What the hour has no mail for is taken without one.
  expect(server.mails).toHaveLength(before + MAX_EVENT_MAILS);
  const last = server.mails.at(-1)!;
  expect(last.to).toEqual(["kim@example.com"]);
  expect(last.text).toContain(balance_id);
  expect(last.text).toContain("last mail within this hour");
  expect(server.mails.at(-2)!.text).not.toContain("last mail");
  expect((await send("POST", `${path}/test`, undefined, session)).json).toMatchObject({ delivered: false });
  const words = JSON.stringify([server.mails.slice(before), ...nodes.map(({ logged }) => logged)]);
  expect(words).not.toContain(bearer);
  expect(JSON.stringify(nodes.map(({ logged }) => logged))).not.toContain("kim@");
  expect((await first.admin(`/admin/webhooks?balance_id=${balance_id}`)).json.data[0]).toMatchObject({
    origin: "mail",
  });
  for (const node of nodes) await node.close();
  await server.stop();
}

async function signedIn(
  gateway: OpenGateway,
  { key, balance }: { readonly key: string; readonly balance: string },
  server: MailServer,
): Promise<string> {
  await gateway.send("POST", "/v1/me/claim", { bearer: key, json: { email: "kim@example.com" } });
  const token = /#signin=(or-link-\w+)/.exec((await server.mail(1)).text)![1]!;
  const { json } = await gateway.send("POST", "/v1/auth/email/verify", { json: { token } });
  await gateway.send("POST", `/v1/me/claims/${balance}`, { bearer: json.session });
  return json.session;
}
