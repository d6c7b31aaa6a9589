import type { Postgres } from "../database/postgres.ts";
import { payloadJson } from "./conversation-notices.ts";
import type { HeldAnswer, HeldExchange, HeldQuestion } from "./fleet-holds.ts";

/** Notifications carry questions and answers. Every node receives them, the sender too. */
export const postgresHeldExchange = (postgres: Postgres): HeldExchange => ({
  sendQuestion: (question) =>
    postgres.transaction(async (sql) => {
      const others = await sql<{ name: string; alive: boolean }[]>`
        SELECT name, lease_until > clock_timestamp() AS alive FROM nodes
        WHERE open AND name <> ${question.asker}`;
      const isSent =
        others.some(({ alive }) => alive) && (await postgres.notify(sql, HELD, [JSON.stringify(question)]));
      const named = (answers: boolean) =>
        others.flatMap(({ name, alive }) => ((alive && isSent) === answers ? [name] : []));
      return { answering: named(true), silent: named(false) };
    }),
  async sendAnswer(answer) {
    await postgres.transaction((sql) => postgres.notify(sql, HELD, [JSON.stringify(answer)]));
  },
});

/** The channel of questions and answers. */
export const HELD = "gateway_held";

/** Null for what a node of another version may send. */
export function heldMessage(payload: string): HeldQuestion | HeldAnswer | null {
  const message = payloadJson(payload) as Partial<HeldQuestion & HeldAnswer> | null;
  const isOurs = Array.isArray(message?.counters) || Array.isArray(message?.amounts);
  return isOurs ? (message as HeldQuestion | HeldAnswer) : null;
}
