import { type SmtpConfig, transportTo } from "../customers/mail/mailer.ts";
import { connectionMistake, Postgres } from "../store/database/postgres.ts";
import { PostgresDatabase } from "../store/database/postgres-database.ts";
import { ADMIN_TOKEN, FleetStore, hashOfToken, NETWORKS } from "../store/nodes/fleet.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { systemClock } from "../units/clock.ts";
import { OutsideParty } from "../units/outside-party.ts";
import { messageOf } from "./console.ts";
import { type Finding, failing, ok, warning } from "./finding.ts";
import { hasTable } from "./present-store.ts";

/** The database that gateways share, where the configuration names one. */
export async function checkDatabase(store: StoreConfig, adminToken: string | undefined): Promise<Finding[]> {
  if (store.kind !== "postgres") return [];
  const check = "database";
  const postgres = new Postgres({ url: store.url, connections: 1, deadlineMs: ANSWER_MS }, systemClock);
  try {
    const startedMs = performance.now();
    await postgres.query((sql) => sql`SELECT 1`);
    const connectedMs = performance.now();
    const [row] = await postgres.query<{ server_version: string }>((sql) => sql`SHOW server_version`);
    const tripMs = performance.now() - connectedMs;
    const connectMs = connectedMs - startedMs;
    return [
      ok(
        check,
        `PostgreSQL ${row!.server_version}: connected in ${connectMs.toFixed(0)} ms, answers in ${tripMs.toFixed(1)} ms`,
      ),
      ...(adminToken ? await checkSharedToken(postgres, adminToken) : []),
    ];
  } catch (error) {
    const mistake = await connectionMistake(store.url, error);
    return [failing(check, mistake ?? messageOf(error), "docs/scaling.md says what `store` has to be.")];
  } finally {
    await postgres.close();
  }
}

/** Whether the gateways that share the database were started with this token. */
async function checkSharedToken(postgres: Postgres, adminToken: string): Promise<Finding[]> {
  // No gateway of this version has started on it yet.
  if (!(await hasTable(postgres, "fleet_secrets"))) return [];
  const fleet = new FleetStore(new PostgresDatabase(postgres));
  const [secret] = await postgres.query<{ secret: string }>(
    (sql) => sql`SELECT secret FROM fleet_secrets WHERE name = ${NETWORKS}`,
  );
  const nodes = [...(await fleet.settings())];
  const others = nodes.filter(
    ([, settings]) =>
      secret === undefined || settings[ADMIN_TOKEN] !== hashOfToken(adminToken, secret.secret),
  );
  if (others.length === 0) return [];
  const named = others.map(([node]) => node).join(", ");
  const next = `Give all gateways of the store the same ${ADMIN_TOKEN}: operators are let in by each one's own.`;
  return [warning("nodes", `${ADMIN_TOKEN} here is not that of ${named}`, next)];
}

/** The mail server, up to the point where a mail would be handed over. */
export async function checkMail(smtp: SmtpConfig | null): Promise<Finding[]> {
  if (smtp === null) return [];
  const check = "mail";
  const transport = await transportTo(smtp);
  try {
    await transport.verify();
    const signedIn = smtp.user === null ? "without signing in" : `and signs ${smtp.user} in`;
    return [ok(check, `${smtp.host}:${smtp.port} answers ${signedIn}`)];
  } catch (error) {
    const next = "People cannot sign in by email until `smtp` in the configuration is right.";
    const server = new OutsideParty({ called: "mail server", secrets: [smtp.password ?? ""], addresses: [] });
    return [failing(check, `${smtp.host}:${smtp.port}: ${server.redact(messageOf(error))}`, next)];
  } finally {
    transport.close();
  }
}

const ANSWER_MS = 10_000;
