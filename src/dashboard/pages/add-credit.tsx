import { useState } from "preact/hooks";
import type { CheckoutAnswer, PaymentAnswer, PaymentMethod, PaymentOptions } from "../../api/payments.ts";
import { type Api, ApiRefusal } from "../api.ts";
import { randomName, roughUsd, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Operator } from "../parts/contact.tsx";
import { CopiedId } from "../parts/copy-button.tsx";
import { ActionForm, Form, readAmount, TextField, useField } from "../parts/field.tsx";
import { Loaded, Problem, Section } from "../parts/page.tsx";
import { useAction, useApi, useResource } from "../resource.ts";
import { go } from "../route.ts";
import { browserWallet, type Wallet } from "../wallet.ts";
import { readOffer, signOffer } from "./wallet-payment.ts";

/** The ways in which this balance's owner can add credit: those that the gateway offers, or the operator. */
export function AddCredit() {
  const path = "v1/payments/options";
  const options = useResource((api) => api.get<PaymentOptions>(path).catch(noneWhereOff), []);
  return (
    <Section title="Add credit" class="card stack">
      <Loaded of={options}>
        {({ methods, needs }) =>
          methods.length === 0 ? (
            <ContactOperator />
          ) : needs.length > 0 ? (
            <ShowSaved onSaved={options.reload} />
          ) : (
            <Pay methods={methods} />
          )
        }
      </Loaded>
    </Section>
  );
}

/** Where nothing can be paid, the path is unknown. */
function noneWhereOff(error: unknown): PaymentOptions {
  if (error instanceof ApiRefusal && error.code === "unsupported_endpoint") return { methods: [], needs: [] };
  throw error;
}

function ContactOperator() {
  const { me } = useOwner();
  return (
    <>
      <p>
        Credit is added by <Operator contact={me.contact} />. Give them the id of your balance; it is not
        secret:
      </p>
      <p class="id">
        <CopiedId label="the id of your balance" value={me.balance_id} />
      </p>
    </>
  );
}

/** A balance without an account is lost with its secrets, and so is what is paid into it. */
function ShowSaved({ onSaved }: { onSaved: () => void }) {
  const api = useApi();
  const key = useField("");
  const show = useAction(async () => {
    await api.post("v1/me/saved", { key: key.value.trim() });
    onSaved();
  });
  return (
    <ActionForm action={show} submit="Both are saved">
      <p class="soft">
        This balance has no account: if you lose both secrets, you lose its credit. You signed in with the
        recovery secret; now paste the API key from where you saved it.
      </p>
      <TextField label="API key" type="password" placeholder="or-live-…" required {...key} />
    </ActionForm>
  );
}

function Pay({ methods }: { methods: readonly PaymentMethod[] }) {
  const api = useApi();
  const { min_usd, max_usd, suggested_usd } = methods[0]!;
  const [text, setText] = useState(String(suggested_usd));
  // Made with the form: sending it twice makes one payment.
  const [idempotencyKey, setIdempotencyKey] = useState(() => randomName("page"));
  const pay = useAction(async (by: "card" | Wallet) => {
    const keyed = api.having({ "idempotency-key": idempotencyKey });
    const amount_usd = readAmount(text);
    if (by === "card") await payByCard(keyed, amount_usd);
    else await payByWallet(keyed, amount_usd, by);
  });
  const card = methods.find(({ rail }) => rail === "card");
  const wallet = methods.some(({ rail }) => rail === "x402") ? browserWallet() : null;
  return (
    <Form onSubmit={() => pay.run(card === undefined ? wallet! : "card")}>
      <TextField
        label="Amount in dollars"
        inputMode="decimal"
        value={text}
        onValue={(typed) => {
          setText(typed);
          setIdempotencyKey(randomName("page"));
        }}
        hint={`${usd(min_usd)} to ${usd(max_usd)}.${card === undefined ? "" : feeHint(card)}`}
        required
      />
      <Problem error={pay.error} />
      <div class="row">
        {card !== undefined && (
          <button type="submit" class="primary" disabled={pay.busy}>
            Pay by card
          </button>
        )}
        {wallet !== null && (
          <button
            type={card === undefined ? "submit" : "button"}
            class={card === undefined ? "primary" : "quiet"}
            disabled={pay.busy}
            onClick={card === undefined ? undefined : () => pay.run(wallet)}
          >
            Pay with my wallet
          </button>
        )}
      </div>
      {wallet === null && card === undefined && (
        <p class="soft">
          This balance is paid for with a wallet, and this browser has none. Agents pay by themselves, with
          x402.
        </p>
      )}
      {wallet !== null && (
        <p class="hint">
          Your wallet shows what it moves and to whom, and asks before it signs. It costs no gas.
        </p>
      )}
    </Form>
  );
}

async function payByCard(keyed: Api, amount_usd: number): Promise<void> {
  const { id, checkout_url } = await keyed.post<CheckoutAnswer>("v1/credits", { amount_usd, rail: "card" });
  if (checkout_url === null) go(`credit/${id}`);
  else location.assign(checkout_url);
}

/** Asks for an offer, has it signed, and sends it: the gateway moves the money. */
async function payByWallet(keyed: Api, amount_usd: number, wallet: Wallet): Promise<void> {
  const order = { amount_usd, rail: "x402" };
  const first = await keyed
    .post<OrderedPayment>("v1/credits", order)
    .catch((refusal) =>
      refusal instanceof ApiRefusal && refusal.offer !== null
        ? { offer: refusal.offer }
        : Promise.reject(refusal),
    );
  // The page was left while this order was paid.
  if ("id" in first) return go(`credit/${first.id}`);
  const signed = keyed.having({ "payment-signature": await signOffer(wallet, readOffer(first.offer)) });
  const { id } = await signed.post<OrderedPayment>("v1/credits", order);
  go(`credit/${id}`);
}

type OrderedPayment = Pick<PaymentAnswer, "id">;

const feeHint = ({ fee }: PaymentMethod): string =>
  fee === undefined || (fee.percent === 0 && fee.fixed_usd === 0)
    ? ""
    : ` A card is charged ${fee.percent} % and ${roughUsd(fee.fixed_usd)} more, for the processor.`;
