import type { Clock } from "../../units/clock.ts";
import type { DeliveryFailure } from "./delivery.ts";
import type { OutgoingEvent } from "./event.ts";
import { testEvent } from "./own-webhooks.ts";
import type { OperatorsWebhook, Webhook, WebhookStore } from "./webhook.ts";

/** What the operator does with the endpoints of the configuration. */
export class OperatorsWebhooks {
  constructor(private readonly deps: OperatorsWebhooksDeps) {}

  list(): Promise<readonly OperatorsWebhook[]> {
    return this.deps.store.list();
  }

  /** Sends one event, at once; why that failed, or null. Undefined where there is no endpoint of that id. */
  async test(id: string): Promise<DeliveryFailure | null | undefined> {
    const webhook = (await this.list()).find((one) => one.id === id && one.url !== "");
    return webhook === undefined
      ? undefined
      : this.deps.send(webhook, testEvent(id, null, this.deps.clock.now()));
  }
}

interface OperatorsWebhooksDeps {
  readonly store: Pick<WebhookStore, "list">;
  readonly clock: Pick<Clock, "now">;
  readonly send: (webhook: Webhook, event: OutgoingEvent) => Promise<DeliveryFailure | null>;
}
