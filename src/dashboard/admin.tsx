import { render } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { OperatorAnswer } from "../api/operators.ts";
import { Balance } from "./admin/balance.tsx";
import { Balances } from "./admin/balances.tsx";
import { Books } from "./admin/books.tsx";
import { Changes } from "./admin/changes.tsx";
import { ConfigPage } from "./admin/config.tsx";
import { Events } from "./admin/events.tsx";
import { Hosts } from "./admin/hosts.tsx";
import { KeyPage } from "./admin/key.tsx";
import { Operators } from "./admin/operators.tsx";
import { Overview } from "./admin/overview.tsx";
import { Payments } from "./admin/payments.tsx";
import { ReceiptPage } from "./admin/receipt.tsx";
import { Requests } from "./admin/requests.tsx";
import { RoleProvider } from "./admin/role-button.tsx";
import { Usage } from "./admin/usage.tsx";
import { Api, onUnauthorized } from "./api.ts";
import { Button } from "./parts/button.tsx";
import { ActionForm, TextField, useField } from "./parts/field.tsx";
import { type AppPage, Entrance, Frame, PageAt } from "./parts/page.tsx";
import { ApiProvider, useAction, useGet } from "./resource.ts";
import { go, useRoute } from "./route.ts";

/** The operator's application. The token stays in the tab's session storage: the closed tab forgets it. */
function Admin() {
  const [token, setToken] = useState(() => sessionStorage.getItem(TOKEN_SLOT));
  const keep = (entered: string) => {
    sessionStorage.setItem(TOKEN_SLOT, entered);
    setToken(entered);
  };
  const leave = () => {
    sessionStorage.removeItem(TOKEN_SLOT);
    setToken(null);
    go("");
  };
  const api = useMemo(() => new Api(token), [token]);
  if (token === null) return <Door onToken={keep} />;
  return (
    <ApiProvider value={api}>
      <Inside onLeave={leave} />
    </ApiProvider>
  );
}

const TOKEN_SLOT = "gateway-admin";

function Door({ onToken }: { onToken: (token: string) => void }) {
  const text = useField("");
  const open = useAction(async () => {
    const token = text.value.trim();
    await new Api(token).get("admin/hosts").catch(onUnauthorized("That is not this gateway's admin token."));
    onToken(token);
  });
  return (
    <Entrance title="Administration" lead="For the operator of this gateway.">
      <section class="card">
        <ActionForm action={open} submit="Open">
          <TextField
            label="Admin token"
            type="password"
            required
            hint="GATEWAY_ADMIN_TOKEN, or the file that the gateway names when it starts."
            {...text}
          />
        </ActionForm>
      </section>
    </Entrance>
  );
}

function Inside({ onLeave }: { onLeave: () => void }) {
  const route = useRoute();
  const config = useGet<{ readonly payments?: object | null }>("admin/config");
  const me = useGet<OperatorAnswer>("admin/me");
  const hidden: readonly string[] = [
    ...(config.data?.payments == null ? ["payments"] : []),
    ...(me.data?.role === "admin" ? [] : ["operators"]),
  ];
  return (
    <Frame
      pages={PAGES.filter(({ path }) => !hidden.includes(path))}
      route={UNDER.get(route[0] ?? "") ?? route}
      links={
        <>
          <a href="status">Status</a>
          <a href="dashboard">Dashboard</a>
        </>
      }
      foot={
        <>
          {me.data !== null && (
            <span class="soft small">
              {me.data.name === me.data.role ? me.data.name : `${me.data.name}, ${me.data.role}`}
            </span>
          )}
          <Button label="Sign out" onClick={onLeave} />
        </>
      }
    >
      <RoleProvider value={me.data?.role ?? "read"}>
        <PageAt route={route} pages={[...PAGES, ...UNLISTED]} />
      </RoleProvider>
    </Frame>
  );
}

const PAGES: readonly AppPage[] = [
  { path: "", name: "Overview", page: Overview },
  { path: "requests", name: "Requests", page: Requests },
  { path: "hosts", name: "Hosts", page: Hosts },
  { path: "balances", name: "Balances", page: Balances, one: Balance },
  { path: "payments", name: "Payments", page: Payments },
  { path: "usage", name: "Usage", page: Usage },
  { path: "events", name: "Events", page: Events },
  { path: "books", name: "Books", page: Books },
  { path: "changes", name: "Changes", page: Changes },
  { path: "operators", name: "Operators", page: Operators },
  { path: "config", name: "Configuration", page: ConfigPage },
];

/** In no menu: a receipt is one of the requests, and a key is a balance's. */
const UNLISTED: readonly AppPage[] = [
  { path: "receipts", name: "Receipts", page: Requests, one: ReceiptPage },
  { path: "keys", name: "Keys", page: Balances, one: KeyPage },
];

/** Where the menu shows them. */
const UNDER: ReadonlyMap<string, readonly string[]> = new Map([
  ["receipts", ["requests"]],
  ["keys", ["balances"]],
]);

render(<Admin />, document.getElementById("app")!);
