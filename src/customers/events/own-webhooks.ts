import { type Clock, type EpochMs, epochMs, HOUR_MS } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse } from "../../units/errors/refusal.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import type { BalanceId } from "../../units/id.ts";
import { newId } from "../../units/id.ts";
import type { RandomBytes } from "../../units/random.ts";
import { type Actor, changedHands } from "../keys/root.ts";
import type { DeliveryFailure } from "./delivery.ts";
import { eventOf, type OutgoingEvent, TEST_EVENT } from "./event.ts";
import {
  MAX_OWN_WEBHOOKS,
  type OwnWebhook,
  type OwnWebhookChange,
  type OwnWebhookStore,
} from "./own-webhook.ts";
import type { SealedSecrets } from "./sealed-secrets.ts";
import { MAILBOX, newWebhookSecret, type Webhook, type WebhookFormat } from "./webhook.ts";

/** What owners do with the endpoints of their balance. */
export class OwnWebhooks {
  constructor(private readonly deps: OwnWebhooksDeps) {}

  list(balance: BalanceId): Promise<readonly OwnWebhook[]> {
    return this.deps.store.list(balance);
  }

  async show(balance: BalanceId, id: string): Promise<OwnWebhook | Refusal> {
    return (await this.deps.store.find(balance, id)) ?? unknownWebhook(id);
  }

  /** With its secret, which is shown this once. */
  async create(
    balance: BalanceId,
    { url: named, kinds, format }: NewWebhook,
    by: Actor,
  ): Promise<{ readonly webhook: OwnWebhook; readonly secret: string | null } | Refusal> {
    const problem = format === "mail" ? await this.mailProblem(balance, named) : this.problemOf(named ?? "");
    if (problem !== null) return problem;
    const url = format === "mail" ? MAILBOX : named!;
    if (!(await this.deps.isFunded(balance))) return noCredit();
    const { random, clock, sealed, store } = this.deps;
    const secret = format === "signed" ? newWebhookSecret(random) : null;
    const webhook: OwnWebhook = {
      id: newId("wh", random),
      balanceId: balance,
      url,
      kinds,
      format,
      secrets: secret === null ? [] : [sealed.seal(secret)],
      overlapUntil: null,
      createdAt: clock.now(),
      failures: 0,
      problem: null,
      pausedAt: null,
      dueAt: epochMs(0),
    };
    const outcome = await store.add(webhook, by);
    if (outcome === "changed hands") return changedHands();
    return outcome === "full" ? tooMany() : { webhook, secret };
  }

  async change(
    balance: BalanceId,
    id: string,
    { isPaused, ...spec }: Partial<Omit<WebhookSpec, "format">> & { readonly isPaused?: boolean },
    by: Actor,
  ): Promise<OwnWebhook | Refusal> {
    const problem = spec.url === undefined ? null : await this.urlChangeProblem(balance, id, spec.url);
    if (problem !== null) return problem;
    const now = this.deps.clock.now();
    return this.changed(balance, id, { ...spec, ...pausing(isPaused, now) }, by);
  }

  /** Until a day later, both secrets sign. */
  async rotate(
    balance: BalanceId,
    id: string,
    by: Actor,
  ): Promise<{ readonly webhook: OwnWebhook; readonly secret: string } | Refusal> {
    const { clock, random, sealed, store } = this.deps;
    const present = await store.find(balance, id);
    if (present === null) return unknownWebhook(id);
    if (present.format !== "signed")
      return refuse(
        "invalid_request",
        "Messages to Slack and mails are not signed: there is no secret to replace.",
      );
    const secret = newWebhookSecret(random);
    const webhook = await this.changed(
      balance,
      id,
      {
        secrets: [sealed.seal(secret), present.secrets[0]!],
        overlapUntil: epochMs(clock.now() + OVERLAP_HOURS * HOUR_MS),
      },
      by,
    );
    return "status" in webhook ? webhook : { webhook, secret };
  }

  async remove(balance: BalanceId, id: string, by: Actor): Promise<Refusal | null> {
    const removed = await this.deps.store.remove(balance, id, by);
    if (removed === "changed hands") return changedHands();
    return removed ? null : unknownWebhook(id);
  }

  /** Sends one event, at once; why that failed, or null. Nothing is recorded. */
  test(webhook: OwnWebhook): Promise<DeliveryFailure | null> {
    const { clock, send } = this.deps;
    const now = clock.now();
    return send(signing(webhook, now), testEvent(webhook.id, webhook.balanceId, now));
  }

  private async changed(
    balance: BalanceId,
    id: string,
    change: OwnWebhookChange,
    by: Actor,
  ): Promise<OwnWebhook | Refusal> {
    const changed = await this.deps.store.change(balance, id, change, by);
    if (changed === "changed hands") return changedHands();
    return changed ?? unknownWebhook(id);
  }

  private async mailProblem(balance: BalanceId, url: string | undefined): Promise<Refusal | null> {
    if (url !== undefined)
      return invalidField("url", "Leave `url` out: mails go to the address of the balance's account.");
    return (await this.deps.hasMailbox(balance))
      ? null
      : invalidField(
          "format",
          "`mail` needs an account with an email address. Sign in by email, and claim the balance.",
        );
  }

  private async urlChangeProblem(balance: BalanceId, id: string, url: string): Promise<Refusal | null> {
    const present = await this.deps.store.find(balance, id);
    return present?.format === "mail" ? this.mailProblem(balance, url) : this.problemOf(url);
  }

  private problemOf(url: string): Refusal | null {
    const problem = this.deps.urlProblem(url);
    return problem === null ? null : invalidField("url", problem);
  }
}

export interface OwnWebhooksDeps {
  readonly store: OwnWebhookStore;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly sealed: SealedSecrets;
  /** Whether the balance was ever credited: what costs nothing must not send requests to anybody. */
  readonly isFunded: (balance: BalanceId) => Promise<boolean>;
  /** Whether it belongs to an account with an email address. */
  readonly hasMailbox: (balance: BalanceId) => Promise<boolean>;
  /** Why events cannot be sent there, in a sentence; null where they can. */
  readonly urlProblem: (url: string) => string | null;
  readonly send: (webhook: Webhook, event: OutgoingEvent) => Promise<DeliveryFailure | null>;
}

interface WebhookSpec {
  readonly url: string;
  readonly kinds: readonly WebhookEventKind[] | null;
  readonly format: WebhookFormat;
}

interface NewWebhook extends Omit<WebhookSpec, "url"> {
  /** Absent for mails. */
  readonly url: string | undefined;
}

const OVERLAP_HOURS = 24;

export const testEvent = (id: string, balance: BalanceId | null, at: EpochMs): OutgoingEvent =>
  eventOf(TEST_EVENT, `${id} ${at}`, { at, balance, webhook_id: id });

/** With the secrets that sign now, still sealed. */
export function signing(webhook: OwnWebhook, now: EpochMs): Webhook {
  const { secrets, overlapUntil } = webhook;
  return { ...webhook, secrets: secrets.slice(0, overlapUntil !== null && overlapUntil > now ? 2 : 1) };
}

function pausing(isPaused: boolean | undefined, now: EpochMs): OwnWebhookChange {
  if (isPaused === undefined) return {};
  return isPaused
    ? { pausedAt: now, problem: "paused by the owner" }
    : { pausedAt: null, problem: null, failures: 0, dueAt: epochMs(0) };
}

const unknownWebhook = (id: string): Refusal =>
  invalidField("id", `This balance has no webhook \`${id.slice(0, MAX_SHOWN)}\`.`);

const MAX_SHOWN = 40;

const tooMany = (): Refusal =>
  refuse(
    "invalid_request",
    `The balance has ${MAX_OWN_WEBHOOKS} webhooks, the most it can have. Delete one first.`,
  );

const noCredit = (): Refusal =>
  refuse(
    "insufficient_credit",
    "Webhooks are for balances that credit was added to. Add credit, then create it again.",
  );
