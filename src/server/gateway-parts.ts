import type { Mailer } from "../customers/mail/mailer.ts";
import type { Counting } from "../generation/counting/counting.ts";
import type { Transport } from "../hosts/transport.ts";
import type { HttpDeps, ModelLists } from "../http/deps.ts";
import type { PaymentPace } from "../payments/rails/payment-pace.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import type { LogWriter } from "../telemetry/request-log.ts";
import type { Clock } from "../units/clock.ts";
import type { Log } from "../units/log.ts";
import type { RandomBytes } from "../units/random.ts";
import type { ActiveConfig } from "./active-config.ts";
import type { IpcChannel } from "./workers/messages.ts";

/** What a gateway is built on: production, the simulator, test gateways and benches pass in their own. */
export interface GatewayParts {
  readonly config: ConfigInForce;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly transport: Transport;
  readonly books: Bookkeeping;
  readonly counting: TokenCounting;
  /** Null: only who has built it sends requests. */
  readonly listen: Listening | null;
  readonly log: Log;
  readonly adminToken: string;
  /** Makes the pseudonyms of networks that send free requests, and of end users. */
  readonly networkSecret: string;
  /** To the supervisor, where this is one of several workers. */
  readonly channel: IpcChannel | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Takes the lines of the request log. */
  readonly writeLog: LogWriter | null;
  readonly paymentPace: PaymentPace;
}

/** The configuration as it is now: a reload changes what it answers. */
export type ConfigInForce = Pick<
  ActiveConfig,
  "config" | "links" | "generation" | "http" | "needsRestart" | "modelVersion"
>;

/** As its thread does it. */
type TokenCounting = Pick<Counting, keyof Counting>;

/** What a gateway with a port needs besides. */
export interface Listening {
  open(deps: HttpDeps): Bun.Server<unknown>;
  readonly mailer: Mailer;
  /** By node: in which settings it differs from this one. */
  nodeDifferences(): Promise<ReadonlyMap<string, readonly string[]>>;
  /** The operator asks for it over HTTP; null once the new configuration is in force, otherwise why it is not. */
  reload(): Promise<string | null>;
  readonly modelLists: ModelLists;
}
