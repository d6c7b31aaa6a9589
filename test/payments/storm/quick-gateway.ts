import { PAYMENT_PACE } from "../../../src/payments/rails/payment-pace.ts";

/** The gateway as `bun run start` starts it, except that it looks at its payments so often that a storm may be short. */
Object.assign(PAYMENT_PACE, { watchMs: 250, leaseMs: 4_000, resendMs: 1_000 });
await import("../../../src/main.ts");
