import { type Mutant, mutantsOf } from "./mutant.ts";

/** What `sim:claims` has to notice: the rules of what derives from what, and of what ends with a claim. */
export const CLAIM_MUTANTS: readonly Mutant[] = [
  ...mutantsOf("src/customers/keys/root.ts", {
    "what a session makes derives from set-up": [
      "return actor.account === balance.accountId ? claimOf(balance) : null;",
      "return actor.account === balance.accountId ? SET_UP : null;",
    ],
    "what an account's recovery secret makes derives from set-up": [
      "return balance.undo === null ? SET_UP : claimOf(balance);",
      "return SET_UP;",
    ],
    "what the recovery secret from set-up makes derives from the claim in force": [
      "return balance.undo === null ? SET_UP : claimOf(balance);",
      "return claimOf(balance);",
    ],
    "a session makes keys of a balance that was taken back meanwhile": [
      "return actor.account === balance.accountId ? claimOf(balance) : null;",
      "return claimOf(balance);",
    ],
    "a recovery secret that has ended meanwhile still makes keys": [
      "      if (actor.secret !== balance.recovery) return null;\n",
      "",
    ],
    "a key of a claim works without it": [
      "root !== SET_UP && root !== claimOf(balance)",
      "root !== SET_UP && root > 1_000_000",
    ],
    "a key of a claim works in the next claim": [
      "accountId === null || setUpKey === null ? SET_UP : reclaims + 1;",
      "accountId === null || setUpKey === null || reclaims < 0 ? SET_UP : 1;",
    ],
  }),
  ...mutantsOf("src/customers/keys/rotation.ts", {
    "a key that rotates itself derives from set-up": [
      "const root = rootOf(by, balance, key.root);",
      "const root = rootOf(by, balance);",
    ],
    "a rotation has the root of the key that it replaces": [
      "const successor = { ...key, ...fresh, root };",
      "const successor = { ...key, ...fresh };",
    ],
    "a key is revoked by its owner before": [
      "rootOf(by, balance) === null ? changedHands() : { key: { ...key,",
      "balance === null ? changedHands() : { key: { ...key,",
    ],
    "a key is changed by its owner before": [
      "    if (rootOf(by, withBudgets.balance) === null) return changedHands();\n",
      "",
    ],
  }),
  ...mutantsOf("src/customers/keys/run.ts", {
    "a run is changed by its owner before": [
      "    if (rootOf(by, balance) === null) return changedHands();\n",
      "",
    ],
  }),
  ...mutantsOf("src/store/customers/account-store.ts", {
    "taking a balance back leaves the keys of the claim": ["revokeKeys ? -1 : 0", "revokeKeys ? -1 : 1_000"],
    "taking a balance back is not counted": ["reclaims = reclaims + 1,", "reclaims = reclaims + 0,"],
    "the account's recovery secret stays": [
      "recovery_hash = coalesce(undo_hash, recovery_hash), undo_hash = NULL WHERE",
      "undo_hash = NULL WHERE",
    ],
    "nobody is notified of keys that `revoke_keys` ends": ["[...ended.map(changeOfKey), ...", "[..."],
    "`revoke_keys` ends nothing": ["revokeKeys ? -1 : 0", "0"],
    "other processes are not notified whose a balance is": [
      "[...attach, ...reclaim, ...close].map(changeOfBalance)",
      "[...attach, ...close].map(changeOfBalance)",
    ],
  }),
  ...mutantsOf("src/customers/accounts/change.ts", {
    "the process that takes a balance back remembers whose it was": [
      "[...attach, ...reclaim, ...close,",
      "[...attach, ...close,",
    ],
  }),
  ...mutantsOf("src/customers/accounts/claim.ts", {
    "a key alone claims what was taken back": [
      "if (secret === null) return takesSecret();",
      "if (secret === null) return null;",
    ],
    "any secret next to the key will do": [
      '      return secret === balance.recovery ? null : otherSecret();\n    case "offered"',
      '      return null;\n    case "offered"',
    ],
  }),
  ...mutantsOf("src/customers/accounts/undo.ts", {
    "the holder of the recovery secret in force undoes the claim, and nobody else": [
      'at.state === "claimed" && balance.undo === secret',
      'at.state === "claimed" && balance.recovery === secret',
    ],
    "withdrawing a claim that waits leaves it the key's word": [
      [
        'if (at.state === "offered") return { reclaim: [balance.id], revokeKeys };',
        'if (at.state === "offered") return { decline: balance.id };',
      ],
      ["(change.reclaim?.[0] ?? null)", "(change.decline ?? change.reclaim?.[0] ?? null)"],
    ],
  }),
  ...mutantsOf("src/customers/accounts/recovery.ts", {
    "an account's new secret takes the place of the one that undoes the claim": [
      "return claimedAt === null ? null : undo;",
      "return null;",
    ],
    "a session replaces the secret of what was taken back meanwhile": [
      "balance.owner?.account.id === owner.account;",
      "balance !== null;",
    ],
  }),
  ...mutantsOf("src/customers/accounts/deletion.ts", {
    "an account that is deleted ends what it claimed within the week": ["now < undoEnds(at)", "now < at"],
  }),
];
