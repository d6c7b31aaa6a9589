import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { MeAnswer, SetUpAnswer } from "./answers.ts";
import { ApiRefusal } from "./api.ts";
import { type Owner, OwnerProvider } from "./owner.ts";
import { Budgets } from "./pages/budgets.tsx";
import { CreditPage } from "./pages/credit.tsx";
import { KeyPage } from "./pages/key.tsx";
import { Keys } from "./pages/keys.tsx";
import { Models } from "./pages/models.tsx";
import { Overview } from "./pages/overview.tsx";
import { Playground } from "./pages/playground.tsx";
import { ReceiptPage } from "./pages/receipt.tsx";
import { Receipts } from "./pages/receipts.tsx";
import { SaveSecrets } from "./pages/save-secrets.tsx";
import { BadLink, Welcome } from "./pages/welcome.tsx";
import { Frame, Head } from "./parts/frame.tsx";
import { Loaded, Note } from "./parts/notice.tsx";
import { useResource } from "./resource.ts";
import { go, useRoute } from "./route.ts";
import { endVisit, recoveryVisit, resumeVisit, type Visit } from "./visit.ts";

/** The application: outside until somebody shows an owner's credential, inside from then on. */
function Dashboard() {
  const [visit, setVisit] = useState<Visit | null>(() => resumeVisit(sessionStorage, location, history));
  const [made, setMade] = useState<SetUpAnswer | null>(null);
  const [badLink, setBadLink] = useState(false);
  const secrets = useRef(new Map<string, string>()).current;

  useEffect(() => {
    // A recovery link that is pasted into an open tab changes only the hash.
    const pasted = () => {
      if (location.hash.startsWith("#recover=")) setVisit(resumeVisit(sessionStorage, location, history));
    };
    addEventListener("hashchange", pasted);
    return () => removeEventListener("hashchange", pasted);
  }, []);

  const leave = () => {
    endVisit(sessionStorage);
    secrets.clear();
    setVisit(null);
    setMade(null);
    go("");
  };

  if (made !== null) {
    return (
      <SaveSecrets
        made={made}
        onSaved={() => {
          secrets.set(made.id, made.key);
          setVisit(recoveryVisit(sessionStorage, made.recovery_secret));
          setMade(null);
          go("");
        }}
      />
    );
  }
  if (visit === null) {
    return (
      <>
        {badLink && <BadLink />}
        <Welcome
          onSetUp={setMade}
          onRecovery={(secret) => {
            setBadLink(false);
            setVisit(recoveryVisit(sessionStorage, secret));
          }}
        />
      </>
    );
  }
  return (
    <Inside
      visit={visit}
      secrets={secrets}
      onLeave={leave}
      onUnknown={() => {
        setBadLink(true);
        leave();
      }}
    />
  );
}

function Inside({ visit, secrets, onLeave, onUnknown }: InsideProps) {
  const { api, by } = visit;
  const route = useRoute();
  const place = route[0] ?? "";
  // Asked for again with every page: programs spend while somebody looks.
  const me = useResource(() => api.get<MeAnswer>("v1/me"), [api, place]);
  const unknown = me.error instanceof ApiRefusal && me.error.status === 401;
  useEffect(() => {
    if (unknown) onUnknown();
  }, [unknown]);
  return (
    <Frame
      places={PLACES}
      current={place}
      foot={
        <>
          <a href="status">Status</a>
          <a href="docs/errors">Errors</a>
          <button type="button" class="quiet" onClick={onLeave}>
            {by === "recovery" ? "Close balance" : "Sign out"}
          </button>
        </>
      }
    >
      <Loaded of={me}>
        {(data) => {
          const owner: Owner = { by, api, me: data, refresh: me.reload, secrets };
          return (
            <OwnerProvider value={owner}>
              {data.suspended !== null && (
                <Note tone="warn">
                  <p>
                    This balance is suspended ({data.suspended.replaceAll("_", " ")}): requests are refused.
                    Contact the operator of this gateway.
                  </p>
                </Note>
              )}
              {pageFor(route)}
            </OwnerProvider>
          );
        }}
      </Loaded>
    </Frame>
  );
}

interface InsideProps {
  readonly visit: Visit;
  readonly secrets: Map<string, string>;
  readonly onLeave: () => void;
  readonly onUnknown: () => void;
}

const PLACES = [
  ["", "Overview"],
  ["keys", "Keys"],
  ["budgets", "Budgets"],
  ["receipts", "Receipts"],
  ["credit", "Credit"],
  ["models", "Models"],
  ["playground", "Playground"],
] as const;

function pageFor([place = "", id]: readonly string[]) {
  switch (place) {
    case "":
      return <Overview />;
    case "keys":
      return id === undefined ? <Keys /> : <KeyPage key={id} id={id} />;
    case "budgets":
      return <Budgets />;
    case "receipts":
      return id === undefined ? <Receipts /> : <ReceiptPage key={id} id={id} />;
    case "credit":
      return <CreditPage />;
    case "models":
      return <Models />;
    case "playground":
      return <Playground />;
    default:
      return <Head title="Not found" lead="There is no such page." />;
  }
}

render(<Dashboard />, document.getElementById("app")!);
