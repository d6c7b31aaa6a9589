import {
  type GasAccountId,
  type GasLineStore,
  type GasNonce,
  MAX_QUEUED,
  type TakenNonce,
} from "../../payments/gas-line.ts";
import { assigned, changesOne, type Database, finds, inserted, sql } from "../database/database.ts";
import { AS_WORDS, TableColumns } from "../schema/columns.ts";

/** Nonces of gas accounts. One account's nonces are taken one after another. */
export class SqlGasLineStore implements GasLineStore {
  constructor(private readonly db: Database) {}

  take(account: GasAccountId, row: GasNonce, mined: number): Promise<TakenNonce> {
    return this.db.change<TakenNonce>(`gas ${account.chainId} ${account.address}`, async () => {
      const waiting = await this.db.read<GasNonce>`SELECT ${NONCE} FROM gas_nonces
        WHERE ${of(account)} AND nonce >= ${mined} ORDER BY nonce LIMIT ${MAX_ROWS}`;
      const known = row.payment === null ? undefined : waiting.find(({ payment }) => payment === row.payment);
      if (known !== undefined) return { result: { kind: "known", row: NONCE.read(known) } };
      if (waiting.length >= MAX_QUEUED) return { result: { kind: "full" } };
      const free = waiting.findIndex(({ nonce }, index) => nonce !== mined + index);
      const nonce = mined + (free === -1 ? waiting.length : free);
      if (nonce !== row.nonce) return { result: { kind: "another", nonce } };
      const { chainId: chain_id, address } = account;
      const values = { chain_id, account: address, ...NONCE.row(row) };
      // If two take the same nonce, or one each for the same payment, one finds the other's.
      const taken = sql`SELECT nonce FROM gas_nonces WHERE ${of(account)} AND nonce >= ${mined}`;
      return {
        result: { kind: "taken" },
        statements: [
          this.db.lock(`gas ${chain_id} ${address}`),
          finds(waiting.length, taken),
          changesOne(sql`INSERT INTO gas_nonces ${inserted(values)}`),
        ],
      };
    });
  }

  async line(account: GasAccountId): Promise<readonly GasNonce[]> {
    const rows = await this.db.read<GasNonce>`SELECT ${NONCE} FROM gas_nonces
      WHERE ${of(account)} ORDER BY nonce DESC LIMIT ${MAX_ROWS}`;
    return rows.map(NONCE.read).toReversed();
  }

  async replace(account: GasAccountId, present: GasNonce, next: GasNonce): Promise<boolean> {
    const { nonce, payment, signed } = NONCE.row(present);
    const done = await this.db.commit([
      changesOne(sql`UPDATE gas_nonces SET ${assigned(NONCE.row(next))}
        WHERE ${of(account)} AND nonce = ${nonce!} AND signed = ${signed!}
          AND payment IS NOT DISTINCT FROM ${payment!}`),
    ]);
    return done !== null;
  }

  async forget(account: GasAccountId, below: number): Promise<void> {
    await this.db.commit([sql`DELETE FROM gas_nonces WHERE ${of(account)} AND nonce < ${below}`]);
  }
}

const of = ({ chainId, address }: GasAccountId) => sql`chain_id = ${chainId} AND account = ${address}`;

const NONCE = new TableColumns<GasNonce>("nonce payment signed createdAt signedAt", { signed: AS_WORDS });

/** More than an account's transactions that are not final yet, unless the chain finalises nothing for long. */
const MAX_ROWS = 5_000;
