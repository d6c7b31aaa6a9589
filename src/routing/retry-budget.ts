/**
 * Keeps retries from multiplying the load during an outage. Each request adds half a retry to the budget, so over time there
 * are at most 1.5 attempts per request, plus a reserve for the first moments.
 */
export class RetryBudget {
  private left = RESERVE;

  /** A request begins. */
  earn(): void {
    this.left = Math.min(this.left + RETRIES_PER_REQUEST, RESERVE);
  }

  /** Takes a retry; false if none is left. */
  spend(): boolean {
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}

const RETRIES_PER_REQUEST = 0.5;
const RESERVE = 50;
