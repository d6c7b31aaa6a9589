import { useRef } from "preact/hooks";
import type { EntryAnswer } from "../../api/catalog.ts";
import { FIRST_CALLS } from "../../api/first-calls.ts";
import { useOwner } from "../owner.ts";
import { useList } from "../resource.ts";
import { CopyButton } from "./copy-button.tsx";
import { Choice, useField } from "./field.tsx";
import { Section } from "./frame.tsx";

/**
 * What to write into a program: a call of a model, or of one that answers. The key itself is never in it.
 */
export function FirstCall({ model: named }: { readonly model?: string }) {
  const { api, me } = useOwner();
  const catalog = useList<EntryAnswer>(api, "v1/catalog");
  const picked = useField<keyof typeof FIRST_CALLS>("curl");
  const { name, write } = FIRST_CALLS[picked.value];
  const shown = useRef<HTMLElement>(null);
  const model = named ?? callable(catalog.data ?? []);
  const refused = named === undefined && model !== FREE && me.available_usd <= 0;
  const text = model === null ? null : write(gatewayAddress(), model);
  if (text === null) return null;
  return (
    <Section title="Use a key" class="card">
      <p class="soft">
        Any OpenAI or Anthropic client works, with this gateway as its base URL. <code>KEY</code> stands for
        your key.
        {refused && (
          <>
            {" "}
            No model here is free right now, so it answers once there is <a href="#/credit">credit</a>.
          </>
        )}
      </p>
      <Choice
        label="Client"
        options={Object.entries(FIRST_CALLS).map(([id, { name }]) => [id, name])}
        {...picked}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard */}
      <section ref={shown} class="snippet mono" tabIndex={0} aria-label={`For ${name}`}>
        {text}
      </section>
      <div class="row">
        <CopyButton key={name} label={`the example for ${name}`} value={text} shown={shown} />
      </div>
    </Section>
  );
}

/** The page calls the API at addresses next to its own, so that is where programs reach it too. */
export const gatewayAddress = (): string => new URL(".", location.href).href.replace(/\/$/, "");

/** Free where something is, because a new balance is empty. */
function callable(models: readonly EntryAnswer[]): string | null {
  const served = models.filter(({ available }) => available);
  return served.some(({ free }) => free) ? FREE : (served[0]?.id ?? null);
}

const FREE = "gateway/auto:free";
