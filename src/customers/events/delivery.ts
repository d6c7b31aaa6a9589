import { type Clock, DAY_MS, type EpochMs, epochMs, HOUR_MS, pause } from "../../units/clock.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import { EVENT_DAYS, type EventId, type OutgoingEvent, type RecordedEvent } from "./event.ts";
import {
  type ConfiguredWebhook,
  type DeliveryQueue,
  type DeliveryState,
  messageTo,
  type Webhook,
  type WebhookStore,
} from "./webhook.ts";

/**
 * Sends recorded events to their endpoints: to each in the order of the events, and by one process at a time. An event is
 * noted as delivered after the endpoint has taken it, so a crash sends it again, under the same id. Endpoints that fail
 * are tried again later and later, and are paused in the end.
 */
export class EventDelivery {
  private readonly rounds: Rounds;
  private readonly sending = new Map<string, Promise<void>>();
  /** The endpoints as this process last wrote them. */
  private configured = "";
  private forgetAt = 0;

  constructor(private readonly deps: EventDeliveryDeps) {
    this.rounds = new Rounds(deps.clock, 0, () => this.round());
  }

  /** Resolves once what happens from now on is recorded for the endpoints of the configuration; never rejects. */
  async prepare(): Promise<void> {
    await this.configure().catch((error) => this.failed(error));
  }

  /** Resolves when nothing is being sent any more. */
  async stop(): Promise<void> {
    await this.rounds.stop();
    await Promise.all(this.sending.values());
  }

  private async round(): Promise<number> {
    try {
      await this.configure();
      return (await this.sendDue()) ? POLL_MS : IDLE_MS;
    } catch (error) {
      this.failed(error);
      return IDLE_MS;
    }
  }

  private async configure(): Promise<void> {
    const { operators } = this.deps;
    const webhooks = operators?.webhooks() ?? [];
    const text = JSON.stringify(webhooks);
    if (operators === null || text === this.configured) return;
    await operators.store.configure(webhooks);
    this.configured = text;
  }

  /** False where there is no endpoint. */
  private async sendDue(): Promise<boolean> {
    const { queue, operators, clock } = this.deps;
    const now = clock.now();
    const free = MAX_AT_ONCE - this.sending.size;
    if (free === 0) return true;
    const due = await queue.claim(now, epochMs(now + LEASE_MS), free);
    for (const webhook of due ?? []) {
      const sent = this.sendAll(webhook)
        .catch((error) => this.failed(error))
        .finally(() => this.sending.delete(webhook.id));
      this.sending.set(webhook.id, sent);
    }
    if (operators !== null && now >= this.forgetAt) {
      this.forgetAt = now + HOUR_MS;
      await this.forgetOld(now, operators.store);
    }
    return due !== null;
  }

  private async forgetOld(now: EpochMs, store: Pick<WebhookStore, "forget">): Promise<void> {
    const before = epochMs(now - EVENT_DAYS * DAY_MS);
    while (!this.rounds.stopped && (await store.forget(before)) > 0);
  }

  private async sendAll(webhook: Webhook): Promise<void> {
    const { queue, clock, open, pace } = this.deps;
    const endAt = clock.elapsedMs() + SENDING_MS;
    const line = open(webhook);
    let { failures } = webhook;
    try {
      for (;;) {
        const events = await queue.waiting(webhook.id, pace.atOnce);
        const mayGoOn = () => !this.rounds.stopped && clock.elapsedMs() < endAt;
        const { delivered, failure } = await sendSome(line, events, mayGoOn);
        const isLast = failure !== null || delivered.length < pace.atOnce || pace.restMs > 0 || !mayGoOn();
        if (delivered.length > 0) failures = 0;
        const state =
          failure === null ? this.healthy(webhook, isLast) : this.broken({ ...webhook, failures }, failure);
        await queue.note(webhook, delivered, state, clock.now());
        if (isLast) return;
        await pause(clock, PAUSE_MS);
      }
    } finally {
      line.close();
    }
  }

  /** The claim ends with the last. */
  private healthy({ dueAt }: Webhook, isLast: boolean): DeliveryState {
    const { clock, pace } = this.deps;
    const next = epochMs(clock.now() + pace.restMs);
    return { failures: 0, problem: null, pausedAt: null, dueAt: isLast ? next : dueAt };
  }

  private broken({ id, failures }: Webhook, { problem, isFinal }: DeliveryFailure): DeliveryState {
    const { clock, log } = this.deps;
    const now = clock.now();
    const waitMs = isFinal ? undefined : RETRY_MS[failures];
    const isPaused = waitMs === undefined;
    log(isPaused ? "webhook paused" : "webhook", { webhook: id, problem, attempt: failures + 1 });
    return {
      failures: failures + 1,
      problem,
      pausedAt: isPaused ? now : null,
      dueAt: epochMs(now + (waitMs ?? 0)),
    };
  }

  private failed(error: unknown): void {
    if (!this.rounds.stopped) this.deps.log("webhooks", { problem: String(error) });
  }
}

async function sendSome(
  line: WebhookLine,
  events: readonly RecordedEvent[],
  mayGoOn: () => boolean,
): Promise<{ delivered: EventId[]; failure: DeliveryFailure | null }> {
  const delivered: EventId[] = [];
  for (const event of events) {
    if (!mayGoOn()) break;
    const failure = await line.send(event);
    if (failure !== null) return { delivered, failure };
    delivered.push(event.id);
  }
  return { delivered, failure: null };
}

/** An endpoint while events are sent to it, one after another. */
export interface WebhookLine {
  /** Null once the endpoint has taken the event; never rejects. */
  send(event: OutgoingEvent): Promise<DeliveryFailure | null>;
  close(): void;
}

/** What endpoints are posted to. */
export interface WebhookPoster {
  /** The status of the answer, or why there was none; never rejects. */
  post(
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
  ): Promise<number | { readonly message: string }>;
  close(): void;
}

export const webhookLine = (
  webhook: Pick<Webhook, "format" | "secrets">,
  clock: Pick<Clock, "now">,
  connection: WebhookPoster,
): WebhookLine => ({
  async send(event) {
    const { headers, body } = messageTo(webhook, event, clock.now());
    const answer = await connection.post(headers, body);
    if (typeof answer !== "number") return { problem: answer.message, isFinal: false };
    if (answer >= 200 && answer < 300) return null;
    return { problem: `the endpoint answered ${answer}`, isFinal: answer === GONE };
  },
  close: () => connection.close(),
});

const GONE = 410;

export interface DeliveryFailure {
  /** For the operator's log. */
  readonly problem: string;
  /** The endpoint wants no more events. */
  readonly isFinal: boolean;
}

interface EventDeliveryDeps {
  readonly queue: DeliveryQueue;
  /** What the configuration names, read in each round; null where the endpoints are owners' own. */
  readonly operators: {
    readonly store: Pick<WebhookStore, "configure" | "forget">;
    readonly webhooks: () => readonly ConfiguredWebhook[];
  } | null;
  readonly pace: DeliveryPace;
  readonly clock: Clock;
  readonly log: Log;
  readonly open: (webhook: Webhook) => WebhookLine;
}

export interface DeliveryPace {
  /** Sent one after another, and then noted in one transaction: as many may be sent again after a crash. */
  readonly atOnce: number;
  /** An endpoint rests so long after that; 0: it is sent what waits, with a pause that leaves the processor to requests. */
  readonly restMs: number;
}

/** Some 115 a second; most of what an event costs is the transaction that notes it. */
export const OPERATORS_PACE: DeliveryPace = { atOnce: 50, restMs: 0 };
/** Four a second: an owner must not flood somebody else's address by means of the gateway. */
export const OWNERS_PACE: DeliveryPace = { atOnce: 20, restMs: 5_000 };

const POLL_MS = 1_000;
/** Where there is no endpoint. */
const IDLE_MS = 10_000;
/** Endpoints that one process sends to. */
const MAX_AT_ONCE = 16;
/** Between so many events, so that an endpoint for which thousands wait leaves the processor to requests. */
const PAUSE_MS = 400;
/** Another process may take an endpoint over after this; a process stops well before. */
const LEASE_MS = 30_000;
const SENDING_MS = 15_000;
/** As Standard Webhooks recommends, some three days in all. */
const RETRY_MS = [
  5_000,
  300_000,
  1_800_000,
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
] as const;
