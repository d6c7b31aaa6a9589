import type { EntryAnswer } from "../../api/catalog.ts";
import { FIRST_CALLS } from "../../api/first-calls.ts";
import { useOwner } from "../owner.ts";
import { useList } from "../resource.ts";
import { Section } from "./page.tsx";
import { Snippet } from "./snippet.tsx";

/**
 * What to write into a program: a call of a model, or of one that answers. The key itself is never in it.
 */
export function FirstCall({ model: named }: { readonly model?: string }) {
  const { me } = useOwner();
  const catalog = useList<EntryAnswer>("v1/catalog");
  const model = named ?? callable(catalog.data ?? []);
  const refused = named === undefined && model !== FREE && me.available_usd <= 0;
  if (model === null) return null;
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
      <Snippet
        label="Client"
        what="the example"
        by="For"
        languages={FIRST_CALLS}
        textOf={(write) => write(gatewayAddress(), model)}
      />
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
