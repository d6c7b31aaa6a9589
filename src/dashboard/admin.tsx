import { render } from "preact";
import { useState } from "preact/hooks";
import { Balance } from "./admin/balance.tsx";
import { Balances } from "./admin/balances.tsx";
import { Books } from "./admin/books.tsx";
import { ConfigPage } from "./admin/config.tsx";
import { Hosts } from "./admin/hosts.tsx";
import { OperatorProvider } from "./admin/operator.ts";
import { Payments } from "./admin/payments.tsx";
import { ReceiptPage } from "./admin/receipt.tsx";
import { Usage } from "./admin/usage.tsx";
import { Api, ApiRefusal } from "./api.ts";
import { Form, TextField } from "./parts/field.tsx";
import { Entrance, Frame, Head } from "./parts/frame.tsx";
import { Problem } from "./parts/notice.tsx";
import { useAction, useResource } from "./resource.ts";
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
  return token === null ? <Door onToken={keep} /> : <Inside token={token} onLeave={leave} />;
}

const TOKEN_SLOT = "gateway-admin";

function Door({ onToken }: { onToken: (token: string) => void }) {
  const [text, setText] = useState("");
  const open = useAction(async () => {
    const token = text.trim();
    await new Api(token).get("admin/hosts").catch((error) => {
      throw error instanceof ApiRefusal && error.status === 401
        ? new Error("That is not this gateway's admin token.")
        : error;
    });
    onToken(token);
  });
  return (
    <Entrance title="Administration" lead="For the operator of this gateway.">
      <section class="card">
        <Form onSubmit={open.run}>
          <TextField
            label="Admin token"
            type="password"
            value={text}
            onValue={setText}
            required
            hint="GATEWAY_ADMIN_TOKEN, or the file that the gateway names when it starts."
          />
          <Problem error={open.error} />
          <button type="submit" class="primary" disabled={open.busy}>
            Open
          </button>
        </Form>
      </section>
    </Entrance>
  );
}

function Inside({ token, onLeave }: { token: string; onLeave: () => void }) {
  const [api] = useState(() => new Api(token));
  const route = useRoute();
  const config = useResource(() => api.get<{ readonly payments?: object | null }>("admin/config"), [api]);
  const takesPayments = config.data?.payments != null;
  return (
    <Frame
      places={PLACES.filter(([path]) => path !== "payments" || takesPayments)}
      current={route[0] === "receipts" ? "balances" : (route[0] ?? "")}
      links={
        <>
          <a href="status">Status</a>
          <a href="dashboard">Dashboard</a>
        </>
      }
      foot={
        <button type="button" class="quiet" onClick={onLeave}>
          Forget the token
        </button>
      }
    >
      <OperatorProvider value={api}>{pageFor(route)}</OperatorProvider>
    </Frame>
  );
}

const PLACES = [
  ["", "Hosts"],
  ["balances", "Balances"],
  ["payments", "Payments"],
  ["usage", "Usage"],
  ["books", "Books"],
  ["config", "Configuration"],
] as const;

function pageFor([place = "", id]: readonly string[]) {
  switch (place) {
    case "":
      return <Hosts />;
    case "balances":
      return id === undefined ? <Balances /> : <Balance key={id} id={id} />;
    case "receipts":
      return <ReceiptPage key={id} id={id ?? ""} />;
    case "payments":
      return <Payments />;
    case "usage":
      return <Usage />;
    case "books":
      return <Books />;
    case "config":
      return <ConfigPage />;
    default:
      return <Head title="Not found" lead="There is no such page." />;
  }
}

render(<Admin />, document.getElementById("app")!);
