import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import { CardRail } from "../../src/payments/rails/stripe/card-rail.ts";
import type { NanoUsd } from "../../src/units/usd.ts";

/** One life of a gateway, which may end right after a write that is durable, before anybody is answered. */
export class EndingProcess {
  isOver = false;

  constructor(
    private readonly mayEnd: () => boolean,
    private readonly end: () => void,
  ) {}

  /** Once it is over, it does nothing of this any more, and what it still does answers nobody. */
  fenced<Parts extends object>(parts: Parts, writes: readonly (keyof Parts)[] = []): Parts {
    return new Proxy(parts, {
      get: (_, name) => {
        const method = Reflect.get(parts, name);
        if (typeof method !== "function") return method;
        return async (...args: unknown[]) => {
          if (this.isOver) return NEVER;
          const answer = await method.apply(parts, args);
          if (!this.isOver && writes.includes(name as keyof Parts) && this.mayEnd()) this.end();
          return this.isOver ? NEVER : answer;
        };
      },
    });
  }
}

const NEVER = new Promise<never>(() => {});

type CardDeps = ConstructorParameters<typeof CardRail>[0];

/** As a gateway has it that sells credit. */
export const cardRail = (deps: Omit<CardDeps, "pace" | "fee" | "onFault" | "returnUrl">): CardRail =>
  new CardRail({
    ...deps,
    pace: PAYMENT_PACE,
    fee: { percent: 2.9, fixed: 300_000_000 as NanoUsd },
    onFault() {},
    returnUrl: () => "https://gateway.example",
  });
