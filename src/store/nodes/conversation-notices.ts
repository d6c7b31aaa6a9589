import type { RemoteRoute } from "../../routing/affinity.ts";
import { sql } from "../database/database.ts";
import type { PostgresDatabase } from "../database/postgres-database.ts";
import type { HeldAnswer, HeldExchange, HeldQuestion } from "./fleet-holds.ts";

/** Notifies all nodes where conversations are, without waiting; the node receives its own notification too. */
export async function notifyConversations(
  db: PostgresDatabase,
  node: string,
  routes: readonly RemoteRoute[],
): Promise<void> {
  const payloads: string[] = [];
  for (let at = 0; at < routes.length; at += ROUTES_EACH)
    payloads.push(`${node} ${JSON.stringify(routes.slice(at, at + ROUTES_EACH))}`);
  const short = payloads.filter((payload) => Buffer.byteLength(payload) < PAYLOAD_BYTES);
  await db.commit(db.notifying(CONVERSATIONS, short));
}

export const CONVERSATIONS = "gateway_conversations";

/** PostgreSQL takes less than 8,000 bytes ("NOTIFY"); one route has some 150, and seldom more than 500. */
const PAYLOAD_BYTES = 8_000;
const ROUTES_EACH = 10;

/** What a node announced; entries in the form of another version are left out. */
export function conversationsIn(payload: string): { node: string; routes: readonly RemoteRoute[] } {
  const end = payload.indexOf(" ");
  const routes = payloadJson(payload.slice(end + 1));
  return { node: payload.slice(0, end), routes: Array.isArray(routes) ? routes.filter(isRemoteRoute) : [] };
}

/** Null for what is no JSON: anybody who may connect to the database can notify. */
function payloadJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isRemoteRoute(route: Partial<RemoteRoute> | null): route is RemoteRoute {
  if (typeof route?.conversation !== "number" || typeof route.keptMs !== "number") return false;
  return [route.model, route.host, route.hostModel].every((name) => typeof name === "string");
}

/** Notifications carry questions and answers. Every node receives them, the sender too. */
export const postgresHeldExchange = (db: PostgresDatabase): HeldExchange => ({
  sendQuestion: (question) =>
    db.transact(function* () {
      const [rows] = yield [
        sql`SELECT name, lease_until > clock_timestamp() AS alive FROM nodes
          WHERE open AND name <> ${question.asker}`,
      ];
      const others = rows as readonly { readonly name: string; readonly alive: boolean }[];
      const sending = others.some(({ alive }) => alive) ? db.notifying(HELD, [JSON.stringify(question)]) : [];
      yield sending;
      const named = (answers: boolean) =>
        others.flatMap(({ name, alive }) => ((alive && sending.length > 0) === answers ? [name] : []));
      return { answering: named(true), silent: named(false) };
    }),
  async sendAnswer(answer) {
    await db.commit(db.notifying(HELD, [JSON.stringify(answer)]));
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
