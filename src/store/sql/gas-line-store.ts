import {
  type GasAccountId,
  type GasLineStore,
  type GasNonce,
  MAX_QUEUED,
  type TakenNonce,
} from "../../payments/gas-line.ts";
import { assigned, inserted, part, type SqlDatabase, sql, verbatim } from "./statement.ts";

/** Nonces of gas accounts. Those of one account are taken one after another. */
export class SqlGasLineStore implements GasLineStore {
  constructor(private readonly db: SqlDatabase) {}

  async take(account: GasAccountId, row: GasNonce, mined: number): Promise<TakenNonce> {
    const { db } = this;
    return db.write<TakenNonce>(function* () {
      yield* db.lock(`gas ${account.chainId} ${account.address}`);
      const waiting = yield* sql<GasRow>`SELECT ${COLUMNS} FROM gas_nonces
        WHERE ${of(account)} AND nonce >= ${mined} ORDER BY nonce LIMIT ${MAX_ROWS}`;
      const known = row.payment === null ? undefined : waiting.find(({ payment }) => payment === row.payment);
      if (known !== undefined) return { kind: "known", row: nonceFrom(known) };
      if (waiting.length >= MAX_QUEUED) return { kind: "full" };
      const free = waiting.findIndex(({ nonce }, index) => nonce !== mined + index);
      const nonce = mined + (free === -1 ? waiting.length : free);
      if (nonce !== row.nonce) return { kind: "another", nonce };
      yield* sql`INSERT INTO gas_nonces ${inserted({
        chain_id: account.chainId,
        account: account.address,
        nonce,
        ...written(row),
        created_at: row.createdAt,
      })}`;
      return { kind: "taken" };
    });
  }

  async line(account: GasAccountId): Promise<readonly GasNonce[]> {
    const rows = await this.db.query<GasRow>`SELECT ${COLUMNS} FROM gas_nonces
      WHERE ${of(account)} ORDER BY nonce DESC LIMIT ${MAX_ROWS}`;
    return rows.map(nonceFrom).toReversed();
  }

  async replace(account: GasAccountId, present: GasNonce, next: GasNonce): Promise<boolean> {
    const { db } = this;
    const row = part`${of(account)} AND nonce = ${present.nonce}`;
    return db.write(function* () {
      const [found] = yield* sql<GasRow>`SELECT ${COLUMNS} FROM gas_nonces WHERE ${row} ${db.forUpdate}`;
      const { payment, signed } = written(present);
      if (found?.payment !== payment || found.signed !== signed) return false;
      yield* sql`UPDATE gas_nonces SET ${assigned(written(next))} WHERE ${row}`;
      return true;
    });
  }

  async forget(account: GasAccountId, below: number): Promise<void> {
    await this.db.write(function* () {
      yield* sql`DELETE FROM gas_nonces WHERE ${of(account)} AND nonce < ${below}`;
    });
  }
}

const of = ({ chainId, address }: GasAccountId) => part`chain_id = ${chainId} AND account = ${address}`;

const COLUMNS = verbatim(`nonce, payment, signed, created_at AS "createdAt", signed_at AS "signedAt"`);

interface GasRow extends Omit<GasNonce, "signed"> {
  /** With a space between two. */
  readonly signed: string;
}

const nonceFrom = (row: GasRow): GasNonce => ({
  ...row,
  signed: row.signed.split(" ") as GasNonce["signed"][number][],
});

const written = ({ payment, signed, signedAt }: GasNonce) => ({
  payment,
  signed: signed.join(" "),
  signed_at: signedAt,
});

/** More than an account's transactions that are not final yet, unless the chain finalises nothing for long. */
const MAX_ROWS = 5_000;
