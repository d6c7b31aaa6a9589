import type { LedgerRecord } from "../../src/ledger/record.ts";

/** The end of a request, as far as a journal looks at it. */
export const end = (name: string | number) =>
  ({
    kind: "terminal",
    receipt: `rcpt_${name}`,
    charged: 1,
    counters: [],
    allowances: [],
    body: "{}",
  }) as unknown as LedgerRecord;
