import { expect } from "bun:test";
import { until } from "../fakes/until.ts";
import { ADMIN } from "../process/gateway.ts";

const SPENDING = { model: "sim/echo", messages: [{ role: "user", content: "word ".repeat(200) }] };

/** An owner's own threshold, at gateways or workers that share their books: each crossing is one event, whichever process charges. */
export async function notifiesOwnersOnce(urls: readonly string[]): Promise<void> {
  let turn = 0;
  const send = async (method: string, path: string, bearer: string, json?: object) => {
    const answer = await fetch(urls[turn++ % urls.length]! + path, {
      method,
      headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    expect([200, 201]).toContain(answer.status);
    return answer.json();
  };
  const { key, balance_id, recovery_secret: owner } = await send("POST", "/admin/keys", ADMIN, {});
  const entry = (what: "credits" | "debits", amount_usd: number | "all") =>
    send("POST", `/admin/${what}`, ADMIN, { balance_id, amount_usd, idempotency_key: crypto.randomUUID() });
  const events = async () => (await send("GET", "/v1/events?type=credit.low", owner)).data;
  const arrived = async (count: number) => {
    await until(async () => (await events()).length >= count);
    return (await events()).map(({ data }: { data: { below_usd: number } }) => data.below_usd);
  };
  const set = async (low_credit_usd: number | null) => {
    const me = await send("PATCH", "/v1/me", owner, { low_credit_usd });
    expect([me.low_credit_usd, me.low_credit_default_usd]).toEqual([low_credit_usd, null]);
  };

  await entry("credits", 1);
  await set(0.999999);
  await Promise.all(Array.from({ length: 8 }, () => send("POST", "/v1/chat/completions", key, SPENDING)));
  expect(await arrived(1)).toEqual([0.999999]);
  await set(0.5);
  await entry("debits", 0.6);
  expect(await arrived(2)).toEqual([0.5, 0.999999]);
  await set(0);
  await entry("credits", 1);
  await entry("debits", 1.2);
  await set(null);
  await entry("credits", 1);
  await entry("debits", 1.1);
  await set(0.9);
  await entry("credits", 1);
  await entry("debits", 0.5);
  expect(await arrived(3)).toEqual([0.9, 0.5, 0.999999]);
}
