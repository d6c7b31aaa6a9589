import { type Static, Type } from "@sinclair/typebox";
import { HOST_ORDERS } from "../catalog/catalog.ts";
import type { PriceList } from "../catalog/price-list.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { NANO_PER_USD, type NanoUsd } from "../units/usd.ts";
import { withoutPassword } from "./address.ts";
import { EXPORT } from "./export-settings.ts";
import { HOST } from "./host-settings.ts";
import {
  contact,
  count,
  days,
  link,
  listenAddress,
  mapFrom,
  ms,
  networks,
  nodesOfChains,
  oneOf,
  plain,
  secret,
  text,
  usd,
  yesOrNo,
} from "./kinds.ts";
import { MODEL } from "./model-settings.ts";
import { OPERATORS } from "./operator-settings.ts";
import { PAYMENTS } from "./payment-settings.ts";
import { priceLists } from "./price-list-settings.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";
import { joined, listOf, mapOf, orNull, required, section, setting } from "./setting.ts";
import { WEBHOOKS } from "./webhook-settings.ts";

const dollars = (amount: number): NanoUsd => (amount * NANO_PER_USD) as NanoUsd;

/** `GET /v1/usage` adds up the receipts of 30 days, the present one among them. */
const USAGE_DAYS = 31;

/** Limits of a new key. */
const limits = (rpm: number, tpm: number, day: number, month: number) =>
  section(
    mapOf(
      {
        rpm_limit: setting(orNull(count(1), "for no limit"), rpm, { doc: "requests per minute" }),
        tpm_limit: setting(orNull(count(1), "for no limit"), tpm, {
          doc: "estimated input plus output tokens per minute",
        }),
        daily_limit_usd: setting(orNull(usd(), "for no limit"), dollars(day), { doc: "spend per UTC day" }),
        monthly_limit_usd: setting(orNull(usd(), "for no limit"), dollars(month), {
          doc: "spend per calendar month",
        }),
      },
      "a map of limits",
    ),
  );

const GENERATION = mapOf(
  {
    first_token_ms: setting(ms(1), 30_000, {
      doc: "time to the first token, across all hosts; not above `total_ms`",
      otherwise: "30000, or `total_ms` if that is less",
    }),
    max_hosts: setting(count(1, 100), 3, { doc: "most hosts tried for one request" }),
    chunk_gap_ms: setting(ms(1), 120_000, { doc: "longest silence of a host inside a stream" }),
    keepalive_ms: setting(orNull(ms(1), "for never"), 15_000, {
      doc: "after this much silence the client gets a comment (a `ping` on messages), so that proxies keep the stream open; `null`: never",
    }),
    total_ms: setting(ms(1), 1_200_000, { doc: "longest duration of a request" }),
    write_off_tokens: setting(count(0), 50, {
      doc: "a stream whose host fails with fewer output tokens than this is not charged",
    }),
    default_max_output_tokens: setting(count(1), 16_384, {
      doc: "assumed output ceiling of a request that names none, if the model's own is not smaller",
    }),
  },
  "a map of generation limits",
);

const SMTP = mapOf({
  host: required(text("the name or address of a mail server"), "the mail server's name or address"),
  port: setting(count(1, 65_535), 587, { doc: "465 starts with TLS" }),
  user: setting(text("a user name"), null, { doc: "with a user, TLS is required", otherwise: "none" }),
  password: setting(secret(), null, { doc: "the user's password", otherwise: "none" }),
  from: required(text("the sender's email address"), "the sender's email address"),
});

const WORKERS = plain(
  Type.Union([Type.Integer({ minimum: 1, maximum: 256 }), Type.Literal("auto")], {
    expected: "a whole number from 1 to 256, or auto",
  }),
);

/**
 * Every setting of the configuration file, in the order of the documents and of the operator's view. `hosts`, `models`
 * and `auto` name each other and are read by read-catalog.
 */
export const SETTINGS = mapOf(
  {
    base_url: setting({ ...link(), read: readBaseUrl }, null, {
      doc: "the address at which clients reach the gateway, without `/v1`; used in messages and links",
      otherwise: "the address it listens on",
      perNode: true,
    }),
    dashboard_url: setting(link(), null, {
      doc: "the address of the dashboard",
      otherwise: "`{base_url}/dashboard`",
      perNode: true,
    }),
    status_url: setting(link(), null, {
      doc: "the address of the status page",
      otherwise: "`{base_url}/status`",
      perNode: true,
    }),
    contact: setting(contact(), null, {
      doc: "where customers reach you: a page, or `mailto:` and an address; shown in the dashboard, errors and `/v1/me`",
      otherwise: "pages and errors say to contact the operator",
    }),
    catalog: setting(oneOf(["keyed", "public"]), "keyed", {
      doc: "`public`: the page `/models`, `/v1/models` and `/v1/catalog` need no key",
    }),
    hosts: setting(
      { ...plain(listOf(HOST, "a list of at least one host").schema), rows: HOST.rows },
      undefined,
      { doc: "" },
    ),
    models: setting(
      { ...plain(listOf(MODEL, "a list of at least one model").schema), rows: MODEL.rows },
      undefined,
      { doc: "" },
    ),
    add_models: setting(plain(listOf(MODEL, "a list of at least one model").schema), undefined, {
      doc: "rows of [`models`](#models) in addition to the models found in the environment; a row replaces a model with the same id",
      shown: null,
      otherwise: "none",
    }),
    auto: setting(
      plain(
        mapFrom(
          Type.Array(text("a model id").schema, { minItems: 1, expected: "a list of at least one model id" }),
          "a map from variants to lists of model ids",
        ),
      ),
      undefined,
      {
        doc: "automatic routes by variant: [`auto`](#auto)",
        otherwise: "made from the available models",
      },
    ),
    price_lists: setting(priceLists(), new Map() as ReadonlyMap<string, PriceList>, {
      doc: "other prices for some customers: [`price_lists`](#price_lists)",
      otherwise: "none",
    }),
    defaults: section(
      mapOf({ accountless: limits(60, 400_000, 5, 50), account: limits(300, 1_000_000, 25, 250) }),
    ),
    low_credit_usd: setting(orNull(usd(), "for no notice"), null, {
      doc: "below this, the owner of a balance gets a mail, and [webhooks](webhooks.md) an event ([more](operating.md#low-credit))",
      otherwise: "`null`: neither",
    }),
    open_tier: section(
      mapOf({
        requests_per_day: setting(count(0), 50, { doc: "free requests of an account per UTC day" }),
        accountless_requests_per_day: setting(count(0), 20, {
          doc: "the same without an account: per balance, and per client address",
        }),
        rpm: setting(orNull(count(1), "for no limit"), 20, {
          doc: "free requests per minute and key; `null`: only the key's own limit applies",
        }),
      }),
    ),
    setup: section(
      mapOf({
        accountless_keys_per_address_per_hour: setting(count(0), 60, {
          doc: "calls of `POST /v1/keys` without a credential, per client address; 0: only the operator creates balances, with `POST /admin/keys`",
        }),
      }),
    ),
    sign_in: section(
      mapOf({
        mails_per_hour: setting(count(0), 1_000, {
          doc: "sign-in mails per hour in total; beyond it only people who have signed in before get one",
        }),
      }),
    ),
    generation: section(
      joined(
        GENERATION,
        (limits, { first_token_ms: written }, path, report) => {
          const { firstTokenMs, totalMs } = limits;
          if (written !== undefined && written > totalMs)
            report([...path, "first_token_ms"], describe(written), `at most total_ms, ${totalMs}`);
          return { ...limits, firstTokenMs: Math.min(firstTokenMs, totalMs) };
        },
        (limits) => limits,
      ),
    ),
    routing: section(
      mapOf({
        order: setting(oneOf(HOST_ORDERS), "listed", {
          doc: "order among a model's working hosts: `listed`, as in its `routes`; `price`, spread by price, the cheapest most often; `latency` or `throughput`, fastest first, [as measured](routing.md#by-measure)",
        }),
        hedge_ms: setting(orNull(ms(1), "for never"), null, {
          doc: "a stream without a first token after this time also goes to the next host, and the faster one serves. The customer pays for one, you possibly for both. `null`: never",
        }),
      }),
    ),
    payments: setting(PAYMENTS, null, {
      doc: "",
      restart: true,
    }),
    webhooks: setting(WEBHOOKS, null, { doc: "" }),
    export: setting(EXPORT, null, { doc: "" }),
    receipts: section(
      mapOf({
        keep_days: setting(orNull(days(USAGE_DAYS), "to keep them forever"), null, {
          doc: "days that receipts are kept, at least 31; `null` keeps them forever",
        }),
        sign: setting(yesOrNo(), false, { doc: "`true`: [signed receipts](#receipts) on request" }),
      }),
    ),
    operators: setting(OPERATORS, null, {
      doc: "people and programs with an admin token of their own: [`operators`](#operators)",
      otherwise: "none",
    }),
    changes: section(
      mapOf({
        keep_days: setting(orNull(days(1), "to keep it forever"), 400, {
          doc: "days that the [log of changes](security.md#the-log-of-changes) is kept; `null` keeps it forever",
        }),
      }),
    ),
    unused_days: setting(orNull(days(1), "to keep them forever"), 30, {
      doc: "days until the gateway removes unused balances (no credit, account, claim or served request ever) and ended keys without a request; `null`: never",
    }),
    body_bytes: setting(count(1), 10 * 1024 * 1024, { doc: "largest request body" }),
    body_memory_bytes: setting(count(1, 1e12), 256 * 1024 * 1024, {
      doc: "memory for bodies above 64 KiB: [below](#memory-for-requests)",
      perNode: true,
    }),
    websocket_message_bytes: setting(count(65_536, 1e9), 512 * 1024, {
      doc: "the largest WebSocket message; each connection takes twice as much of `body_memory_bytes`",
      restart: true,
    }),
    shutdown_delay_ms: setting(ms(), 0, {
      doc: "how long the gateway still serves everything after SIGTERM, with `/readyz` at 503, so that load balancers move away ([rollouts](operating.md#behind-a-load-balancer))",
    }),
    drain_ms: setting(ms(), 30_000, {
      doc: "how long streams may then take to finish; the rest end with `upstream_error` and are billed as if their host had failed",
    }),
    grace_ms: setting(ms(), 24 * 60 * 60 * 1000, { doc: "how long a rotated key keeps working" }),
    store: setting(
      { ...text("sqlite, or a postgres:// address"), read: readStore, show: showStore },
      { kind: "sqlite" } as StoreConfig,
      {
        doc: "`sqlite`, in the data folder; or `postgres://user:password@host/database`, for [several gateways](scaling.md)",
        restart: true,
        perNode: true,
      },
    ),
    journal: setting(oneOf(["disk", "postgres"]), "disk", {
      doc: "with PostgreSQL: `disk`, a journal in the data folder, which must outlive the process; or `postgres`, [without a disk](scaling.md#without-a-disk)",
      restart: true,
      perNode: true,
    }),
    workers: setting(WORKERS, 1, {
      doc: "processes that share the port, or `auto`: as many as there are cores ([more](scaling.md#all-cores-of-one-machine))",
      restart: true,
      perNode: true,
    }),
    log: setting(oneOf(["off", "json"]), "off", {
      doc: "`json`: one line per generation request on standard error ([more](#the-request-log))",
      perNode: true,
    }),
    durability: setting(oneOf(["strict", "relaxed"]), "strict", {
      doc: "`strict`: everything acknowledged is on disk; `relaxed`: a power cut can [lose the last second](reliability.md#what-is-durable-when)",
      restart: true,
    }),
    metrics: setting(listenAddress(), null, {
      doc: "an IP address and a port, such as `127.0.0.1:9090`, where `GET /metrics` needs no token",
      otherwise: "none",
      restart: true,
      perNode: true,
    }),
    trusted_proxies: setting(
      networks(),
      networks().read(["127.0.0.0/8", "::1"], [], () => {}),
      {
        doc: "addresses and blocks (`10.0.0.0/8`) of proxies in front of the gateway, whose `X-Forwarded-For` it believes",
      },
    ),
    smtp: setting(SMTP, null, {
      doc: "the mail server",
      otherwise: "mails are written to `outbox` in the data folder",
    }),
    wallet: section(
      mapOf({
        rpc: setting(nodesOfChains(), new Map() as ReadonlyMap<number, string>, {
          doc: "`{ 1: https://… }`: RPC nodes by chain id, to verify contract wallets (EIP-1271); other wallets need none",
          otherwise: "contract wallets cannot sign in",
        }),
      }),
    ),
  },
  "a map of settings",
);

export type ConfigFile = Static<typeof SETTINGS.schema>;

/** Pages, links and endpoints are paths behind it. */
function readBaseUrl(written: string, path: Path, report: ReportProblem): string | undefined {
  const read = link().read(written, path, report);
  if (read?.includes("?")) report(path, describe(written), "the address without a query");
  if (read?.endsWith("/v1"))
    report(path, describe(written), "the address without `/v1`, which is put behind it");
  return read;
}

function readStore(written: string, path: Path, report: ReportProblem): StoreConfig {
  if (written === "sqlite") return { kind: "sqlite" };
  if (!/^postgres(ql)?:\/\//.test(written) || !URL.canParse(written))
    report(path, "another string", "sqlite, or a postgres:// address");
  return { kind: "postgres", url: written };
}

function showStore(store: StoreConfig): string {
  return store.kind === "sqlite" ? "sqlite" : withoutPassword(store.url);
}
