import type { NewKeyLimits } from "../keys/deps.ts";
import { NANO_PER_USD, type NanoUsd } from "../units/usd.ts";
import type { Config } from "./config.ts";

const usd = (amount: number): NanoUsd => (amount * NANO_PER_USD) as NanoUsd;
const limits = (rpmLimit: number, tpmLimit: number, day: number, month: number): NewKeyLimits => ({
  rpmLimit,
  tpmLimit,
  dailyLimit: usd(day),
  monthlyLimit: usd(month),
});

/** What holds where the file says nothing. Contract §2. */
export const DEFAULTS = {
  accountless: limits(60, 400_000, 5, 50),
  account: limits(300, 1_000_000, 25, 250),
  openTier: { requestsPerDay: 50, accountlessRequestsPerDay: 20, rpm: 20 },
  setup: { accountlessKeysPerAddressPerHour: 60 },
  signIn: { mailsPerHour: 1_000 },
  generation: {
    firstTokenMs: 30_000,
    maxHosts: 3,
    chunkGapMs: 120_000,
    keepaliveMs: 15_000,
    totalMs: 1_200_000,
    writeOffTokens: 50,
    defaultMaxOutputTokens: 16_384,
  } satisfies Config["generation"],
  routing: { order: "listed", hedgeMs: null } satisfies Config["routing"],
  receipts: { keepDays: null, sign: false },
  bodyBytes: 10 * 1024 * 1024,
  bodyMemoryBytes: 256 * 1024 * 1024,
  websocketMessageBytes: 512 * 1024,
  unusedDays: 30,
  payments: {
    amounts: { min: usd(1), suggested: usd(5), max: usd(500), maxPerDay: usd(1_000) },
    confirmations: 1,
    finalizedAbove: usd(100),
    /** Ten transfers with all of the gas that they are sent with. */
    wastedGasPerHour: 3_000_000,
    waitMs: 15_000,
    inlinePerHour: usd(20),
    stripeFee: { percent: 2.9, fixed: usd(0.3) },
  },
  shutdownDelayMs: 0,
  drainMs: 30_000,
  graceMs: 24 * 60 * 60 * 1000,
  journal: "disk" as const,
  workers: 1,
  durability: "strict",
  log: "off",
  /** A proxy on this machine. */
  trustedProxies: ["127.0.0.0/8", "::1"],
  smtpPort: 587,
} as const;
