/**
 * What each credential of a claimed balance derives from, in one place: who made it, and whether it works once the claim
 * was undone or detached. `derivations.test.ts` makes every credential on a gateway and takes the balance back, and holds
 * the table of docs/decisions/0008-accounts.md against this one. To write that again: `bun test/access/derivations.ts`.
 */
export interface Derivation {
  /** The credential that makes it; null for what set-up and the first sign-in make. */
  readonly by: Name | null;
  /** A key is made, or one is rotated; or a recovery secret takes the place of the one in force. */
  readonly act: "set-up" | "sign-in" | "make" | "replace" | { readonly rotate: Name };
  /** The key that takes its place before the balance is taken back. */
  readonly replacedBy?: Name;
  readonly afterUndo: "works" | "ended";
  /** Where `revoke_keys` is sent. */
  readonly revoked?: "ended";
}

const works = { afterUndo: "works" } as const;
const ended = { afterUndo: "ended" } as const;
const key = { revoked: "ended" } as const;

const TABLE = {
  "set-up key": { by: null, act: "set-up", ...works, ...key },
  "recovery secret": { by: null, act: "set-up", ...works },
  "session of the account": { by: null, act: "sign-in", ...ended },
  "owner-made key": { by: "recovery secret", act: "make", ...works, ...key },
  "set-up key, rotated by itself": { by: "set-up key", act: { rotate: "set-up key" }, ...works, ...key },
  "set-up key, rotated by the recovery secret": {
    by: "recovery secret",
    act: { rotate: "set-up key" },
    ...works,
    ...key,
  },
  "recovery secret, replaced by itself": { by: "recovery secret", act: "replace", ...works },
  "key of that": { by: "recovery secret, replaced by itself", act: "make", ...works, ...key },
  "account's key": { by: "session of the account", act: "make", ...ended },
  "account's key, rotated by itself": { by: "account's key", act: { rotate: "account's key" }, ...ended },
  "account's key, rotated by the recovery secret": {
    by: "recovery secret",
    act: { rotate: "account's key" },
    ...works,
    ...key,
  },
  "set-up key, rotated by a session": {
    by: "session of the account",
    act: { rotate: "set-up key" },
    ...ended,
  },
  "set-up key in its grace after that": {
    by: null,
    act: "set-up",
    replacedBy: "set-up key, rotated by a session",
    ...works,
    ...key,
  },
  "account's recovery secret": { by: "session of the account", act: "replace", ...ended },
  "account's recovery secret, replaced by itself": {
    by: "account's recovery secret",
    act: "replace",
    ...ended,
  },
  "key of the account's recovery secret": { by: "account's recovery secret", act: "make", ...ended },
  "that key, rotated by itself": {
    by: "key of the account's recovery secret",
    act: { rotate: "key of the account's recovery secret" },
    ...ended,
  },
  "owner-made key, rotated by the account's recovery secret": {
    by: "account's recovery secret",
    act: { rotate: "owner-made key" },
    ...ended,
  },
  "set-up key, rotated by the account's recovery secret": {
    by: "account's recovery secret",
    act: { rotate: "set-up key" },
    ...ended,
  },
  "that one, rotated by itself": {
    by: "set-up key, rotated by the account's recovery secret",
    act: { rotate: "set-up key, rotated by the account's recovery secret" },
    ...ended,
  },
  "set-up key after that": {
    by: null,
    act: "set-up",
    replacedBy: "set-up key, rotated by the account's recovery secret",
    ...ended,
  },
} as const satisfies Record<string, unknown>;
export type Name = keyof typeof TABLE;
export const DERIVATIONS: Readonly<Record<Name, Derivation>> = TABLE;
export const NAMES = Object.keys(TABLE) as Name[];

/** How a balance is taken back, and whether with `revoke_keys`. */
export const ENDINGS = [
  ["undo", false],
  ["detach", false],
  ["undo", true],
  ["detach", true],
] as const;

export const expected = ({ afterUndo, revoked }: Derivation, revokeKeys: boolean): "works" | "ended" =>
  revokeKeys ? (revoked ?? afterUndo) : afterUndo;

export function derivationTable(): string {
  const rows = NAMES.map((name) => {
    const one = DERIVATIONS[name];
    const maker = one.by ?? (one.act === "sign-in" ? "sign-in" : "set-up");
    return [name, maker, ...ENDINGS.map(([, revokeKeys]) => expected(one, revokeKeys))];
  });
  const ends = ENDINGS.map(([how, revokeKeys]) => `after ${how}${revokeKeys ? " with `revoke_keys`" : ""}`);
  const head = ["credential", "made by", ...ends];
  const widths = head.map((_, at) => Math.max(...[head, ...rows].map((cells) => cells[at]!.length)));
  const padded = (cells: readonly string[]) => cells.map((cell, at) => cell.padEnd(widths[at]!));
  return [padded(head), widths.map((width) => "-".repeat(width)), ...rows.map(padded)]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}

const DOCUMENT = new URL("../../docs/decisions/0008-accounts.md", import.meta.url);
const SHOWN = /(?<=<!-- test\/access\/derivations.ts -->\n\n)[\s\S]*?(?=\n<!-- end -->)/;

export const shownTable = async (): Promise<string | undefined> =>
  SHOWN.exec(await Bun.file(DOCUMENT).text())?.[0];

if (import.meta.main) {
  await Bun.write(DOCUMENT, (await Bun.file(DOCUMENT).text()).replace(SHOWN, derivationTable));
}
