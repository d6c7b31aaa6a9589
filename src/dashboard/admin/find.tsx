import { useState } from "preact/hooks";
import type { AccountAnswer, BalanceAnswer } from "../../api/admin.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { List } from "../../api/schema.ts";
import { type Api, withQuery } from "../api.ts";
import { Find } from "../parts/find.tsx";
import { useApi } from "../resource.ts";

/** The way to whatever a user names when they write to the operator. */
export function FindAny() {
  const api = useApi();
  const [several, setSeveral] = useState<readonly string[]>([]);
  const pathOf = async (text: string) => {
    const paths = await pathsFor(text, api);
    if (paths.length === 0) throw new Error("No account with a balance has this email address or wallet.");
    setSeveral(paths.length > 1 ? paths : []);
    return paths.length === 1 ? paths[0]! : null;
  };
  return (
    <Find label="Find" placeholder="an id, a key, an email address or a wallet" pathOf={pathOf}>
      {several.length > 0 && (
        <ul class="found">
          {several.map((path) => (
            <li key={path}>
              <a href={`#/${path}`} class="mono">
                {path.replace(/^.*\//, "")}
              </a>
            </li>
          ))}
        </ul>
      )}
    </Find>
  );
}

/**
 * The pages that something stands for that a user writes to the operator: an id, a mail address, a wallet, or
 * a key that leaked.
 */
async function pathsFor(text: string, api: Api): Promise<readonly string[]> {
  const id = encodeURIComponent(text);
  // A whole key, as somebody who found it reports it: also one that no longer works.
  if (text.startsWith("or-live-")) {
    return [`keys/${(await api.post<KeyAnswer>("admin/keys/find", { key: text })).id}`];
  }
  if (text.startsWith("rcpt_")) return [`receipts/${id}`];
  if (text.startsWith("key_")) {
    return [`keys/${(await api.get<KeyAnswer>(`admin/keys/${id}`)).id}`];
  }
  if (!text.includes("@") && !text.startsWith("0x")) {
    return [`balances/${(await api.get<BalanceAnswer>(`admin/balances/${id}`)).id}`];
  }
  const query = { [text.includes("@") ? "email" : "wallet"]: text };
  const { data } = await api.get<List<AccountAnswer>>(withQuery("admin/accounts", query));
  return data.flatMap(({ balance_ids }) => balance_ids.map((balance) => `balances/${balance}`));
}
