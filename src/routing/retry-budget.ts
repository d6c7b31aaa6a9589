/**
 * What keeps retries from multiplying the load while much is down: each request adds half a retry to what may be spent,
 * so that over any time there are at most one and a half attempts a request, beside a reserve for the first moments.
 */
export class RetryBudget {
  private left = RESERVE;

  /** A request begins. */
  earn(): void {
    this.left = Math.min(this.left + RETRIES_PER_REQUEST, RESERVE);
  }

  /** False: nothing is left for a retry. */
  spend(): boolean {
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}

const RETRIES_PER_REQUEST = 0.5;
const RESERVE = 50;
