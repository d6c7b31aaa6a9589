import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { SetUpAnswer } from "../api/keys.ts";
import type { MeAnswer } from "../api/me.ts";
import { causeOf } from "../units/errors/suspension.ts";
import { moment } from "./format.ts";
import { type OwnerContext, OwnerProvider } from "./owner.ts";
import { AccountPage } from "./pages/account.tsx";
import { Budgets } from "./pages/budgets.tsx";
import { CreditPage } from "./pages/credit.tsx";
import { KeyPage } from "./pages/key.tsx";
import { Keys } from "./pages/keys.tsx";
import { ModelPage, Models } from "./pages/models.tsx";
import { Overview } from "./pages/overview.tsx";
import { PaymentPage } from "./pages/payment.tsx";
import { ReceiptPage } from "./pages/receipt.tsx";
import { Receipts } from "./pages/receipts.tsx";
import { SaveSecrets } from "./pages/save-secrets.tsx";
import { UseLink } from "./pages/use-link.tsx";
import { UseRecovery } from "./pages/use-recovery.tsx";
import { Webhooks } from "./pages/webhooks.tsx";
import { TurnedAway, Welcome } from "./pages/welcome.tsx";
import { Button } from "./parts/button.tsx";
import { Operator } from "./parts/contact.tsx";
import { Choice } from "./parts/field.tsx";
import { type AppPage, Frame, Loaded, Note, PageAt, Problem } from "./parts/page.tsx";
import { Playground } from "./playground/playground.tsx";
import { ApiProvider, useResource } from "./resource.ts";
import { go, useRoute } from "./route.ts";
import { type Arrival, arrive, endVisit, hasLink, recoveryVisit, type Visit } from "./visit.ts";

/** Where somebody stands: outside until they show an owner's credential, inside from then on. */
type Stage =
  | { readonly at: "arriving" }
  | Arrival
  | { readonly at: "saving"; readonly made: SetUpAnswer }
  | { readonly at: "stuck"; readonly error: unknown };

function Dashboard() {
  const { stage, setStage, secrets, come, enter, recover, leave } = useStage();
  switch (stage.at) {
    case "arriving":
      return null;
    case "stuck":
      return <Problem error={stage.error} />;
    case "link":
      return <UseLink key={stage.token} token={stage.token} onVisit={enter} onDone={come} />;
    case "recovery":
      return (
        <UseRecovery
          key={stage.secret}
          secret={stage.secret}
          onOpen={() => {
            secrets.clear();
            recover(stage.secret);
            go("");
          }}
          onDone={come}
        />
      );
    case "outside":
      return (
        <>
          {stage.turnedAway !== null && <TurnedAway by={stage.turnedAway} />}
          <Welcome
            onSetUp={(made) => setStage({ at: "saving", made })}
            onRecovery={recover}
            onVisit={enter}
          />
        </>
      );
    case "saving":
      return (
        <SaveSecrets
          made={stage.made}
          onSaved={() => {
            secrets.set(stage.made.id, stage.made.key);
            recover(stage.made.recovery_secret);
            go("");
          }}
        />
      );
    case "inside": {
      const { visit, balance = null } = stage;
      // The credential may open nothing, or no longer do.
      const api = visit.api.on(balance, () => leave(visit, visit.by));
      return (
        <ApiProvider value={api}>
          <Inside
            by={visit.by}
            balance={balance}
            onBalance={(chosen) => enter(visit, chosen)}
            secrets={secrets}
            onRecovery={recover}
            onLeave={() => leave(visit, null)}
          />
        </ApiProvider>
      );
    }
  }
}

/** The stage, and the ways from one to the next; `secrets` are of keys that this tab has made, by id. */
function useStage() {
  const [stage, setStage] = useState<Stage>({ at: "arriving" });
  const secrets = useRef(new Map<string, string>()).current;
  const arrivals = useRef(0);
  const enter = (visit: Visit, balance: string | null = null) => setStage({ at: "inside", visit, balance });
  const recover = (secret: string) => enter(recoveryVisit(sessionStorage, secret));
  const come = async () => {
    const mine = ++arrivals.current;
    const arrival = await arrive(sessionStorage, location, history).catch(
      (error): Stage => ({ at: "stuck", error }),
    );
    // A link was pasted while the gateway was still asked who is here: the link is what counts.
    if (mine === arrivals.current) setStage(arrival);
  };

  useEffect(() => {
    come();
    // A link that is pasted into an open tab changes only the hash.
    const pasted = () => hasLink(location.hash) && come();
    addEventListener("hashchange", pasted);
    return () => removeEventListener("hashchange", pasted);
  }, []);

  const leave = async (visit: Visit, turnedAway: Visit["by"] | null) => {
    secrets.clear();
    setStage({ at: "outside", turnedAway });
    go("");
    // Whether or not the gateway receives it, this browser is signed out.
    await endVisit(visit, sessionStorage).catch(() => {});
  };

  return { stage, setStage, secrets, come, enter, recover, leave };
}

function Inside({ by, balance, onBalance, secrets, onRecovery, onLeave }: InsideProps) {
  const route = useRoute();
  const section = route[0] ?? "";
  // Asked for again with every page: programs spend while somebody looks.
  const me = useResource((api) => api.get<MeAnswer>("v1/me"), [section]);
  return (
    <Frame
      pages={PAGES}
      route={route}
      links={
        <>
          <a href="status">Status</a>
          <a href="docs/api">API</a>
          <a href="docs/errors">Errors</a>
        </>
      }
      foot={
        <>
          <Balances of={me.data} value={balance} onValue={onBalance} />
          <Button label="Sign out" onClick={onLeave} />
        </>
      }
    >
      <Loaded of={me}>
        {(data) => {
          const { reload: refresh } = me;
          const leave = onLeave;
          const owner: OwnerContext = { by, me: data, refresh, secrets, useRecovery: onRecovery, leave };
          return (
            <OwnerProvider value={owner}>
              <Notices of={data} section={section} />
              <PageAt route={route} pages={PAGES} />
            </OwnerProvider>
          );
        }}
      </Loaded>
    </Frame>
  );
}

interface InsideProps {
  readonly by: Visit["by"];
  /** Null for all of an account's. */
  readonly balance: string | null;
  readonly onBalance: (balance: string | null) => void;
  readonly secrets: Map<string, string>;
  readonly onRecovery: (secret: string) => void;
  readonly onLeave: () => void;
}

/** For accounts that hold several balances. */
function Balances({ of, value, onValue }: BalancesProps) {
  const balances = of?.account?.balances ?? [];
  if (balances.length < 2) return null;
  return (
    <Choice
      label="Balance"
      all="First balance, all keys"
      value={value ?? ""}
      onValue={(chosen) => onValue(chosen || null)}
      options={balances}
    />
  );
}

interface BalancesProps {
  readonly of: MeAnswer | null;
  readonly value: string | null;
  readonly onValue: (balance: string | null) => void;
}

/** What somebody should know on every page. */
function Notices({ of: me, section }: { of: MeAnswer; section: string }) {
  const { suspended, suspended_at, account, contact, balance_id } = me;
  const claims = account?.claims ?? [];
  return (
    <>
      {suspended !== null && (
        <Note tone="warn">
          <strong>
            This balance is suspended{suspended_at !== null && ` since ${moment(suspended_at)}`}
          </strong>{" "}
          by the operator of this gateway, after {causeOf(suspended)}. Requests are refused and charged
          nothing; credit, keys and receipts stay as they are. To settle it, contact{" "}
          <Operator contact={contact} /> and name the balance <span class="mono">{balance_id}</span>.
        </Note>
      )}
      {claims.length > 0 && section !== "account" && (
        <Note tone="plain">
          A balance was claimed for you. <a href="#/account">Review it</a>
        </Note>
      )}
      {section === "credit" && account?.balances !== undefined && account.undo_until !== undefined && (
        <Note tone="warn">
          This balance was claimed. Until {moment(account.undo_until)}, its earlier recovery secret can take
          it back, with all credit: add credit only if you set up the balance yourself.
        </Note>
      )}
    </>
  );
}

const PAGES: readonly AppPage[] = [
  { path: "", name: "Overview", page: Overview },
  { path: "keys", name: "Keys", page: Keys, one: KeyPage },
  { path: "budgets", name: "Budgets", page: Budgets },
  { path: "receipts", name: "Receipts", page: Receipts, one: ReceiptPage },
  { path: "credit", name: "Credit", page: CreditPage, one: PaymentPage },
  { path: "models", name: "Models", page: Models, one: ModelPage },
  { path: "playground", name: "Playground", page: Playground },
  { path: "webhooks", name: "Webhooks", page: Webhooks },
  { path: "account", name: "Account", page: AccountPage },
];

render(<Dashboard />, document.getElementById("app")!);
