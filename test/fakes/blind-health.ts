import { Health } from "../../src/routing/health.ts";

/** Knows nothing of any host, and never learns: every request tries the hosts as if it were the first. */
export class BlindHealth extends Health {
  override observe(): void {}
  override streamEnded(): void {}
}
